# How everything in this repository is compiled. -march=native and -ffast-math appear nowhere: the first would tie a
# binary to the machine that built it (kernels choose at run time, see TarsusKernels.cmake), the second changes results.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # the Python module links the static library,
if(NOT BUILD_SHARED_LIBS)                # and calls its functions, of which it exports none, without a table
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
  endif()
  set(CMAKE_CXX_FLAGS_RELEASE "-O3")  # no -DNDEBUG: assertions guard the edges, not the kernels
  # Lines for debuggers and sanitizers; a debugger sees variables in a Debug build. -g doubles the time of kernels.
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
  find_program(TARSUS_CCACHE ccache)
  if(TARSUS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # What ccache asks for where precompiled headers are used.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TARSUS_CCACHE})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      add_compile_options(-fpch-preprocess)
    endif()
  endif()
endif()

# Eigen fuses multiplications with additions on 64-bit Arm where this is defined, and not on x86-64: without it both give
# the same bits (docs/decisions/0006). Kernels fuse by name and do not ask for it.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  add_compile_options(-U__ARM_FEATURE_FMA)
endif()

if(TARSUS_SANITIZE)
  add_compile_options(-fsanitize=${TARSUS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TARSUS_SANITIZE})
endif()

# Contraction is off so that lanes and scalars round alike (docs/decisions/0002); kernels ask for fused multiply-adds by
# name. The other two only let the compiler forget errno and the floating-point exception flags, which nobody here reads.
function(tarsus_compile_options TARGET)
  target_compile_options(${TARGET} PRIVATE -Wall -Wextra -ffp-contract=off -fno-math-errno -fno-trapping-math)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # the compiler collects its garbage less often: 8 % of its time
    target_compile_options(${TARGET} PRIVATE "SHELL:--param ggc-min-expand=200" "SHELL:--param ggc-min-heapsize=393216")
  endif()
  # Its own choice for a few hundred bytes is a string instruction, whose start takes as long as all of them.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(STRATEGY vector_loop:640:noalign,libcall:-1:noalign)
    target_compile_options(${TARGET} PRIVATE -mmemset-strategy=${STRATEGY} -mmemcpy-strategy=${STRATEGY})
  endif()
  # GCC 12 warns of "overlapping" and overflowing copies inside std::string's operator+ (its bug 105651) and of a write
  # out of bounds inside fmt 9's parse_align, where the loop's bound rules it out.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${TARGET} PRIVATE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  if(TARSUS_WERROR)
    target_compile_options(${TARGET} PRIVATE -Werror)
  endif()
endfunction()

# For code that computes little (files, tests, the command line): a third less time in the compiler.
function(tarsus_compile_quickly TARGET)
  target_compile_options(${TARGET} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Half of a source's time in the compiler goes into other people's headers. These are read once for a target; HEADERS
# are named as in #include. Sources still include what they use: tools/lint_headers.py compiles headers alone.
function(tarsus_precompile TARGET)
  if(TARSUS_PRECOMPILE)
    set(ANGLED ${ARGN})
    list(TRANSFORM ANGLED PREPEND "<")
    list(TRANSFORM ANGLED APPEND ">")
    target_precompile_headers(${TARGET} PRIVATE ${ANGLED})
  endif()
endfunction()
set(TARSUS_STD_HEADERS algorithm array atomic charconv chrono cmath cstdint cstring filesystem functional limits map
    memory mutex numeric optional set span sstream string string_view thread tuple unordered_map utility variant vector)
