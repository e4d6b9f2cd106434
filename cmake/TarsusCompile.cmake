# Compiler options for everything in this repository. -march=native and -ffast-math are not used. The first would tie a
# binary to the machine that built it (kernels are chosen at run time, see TarsusKernels.cmake); the second changes
# results.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # the Python module links the static library
if(NOT BUILD_SHARED_LIBS)                # and calls its functions directly: none is exported
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
  endif()
  set(CMAKE_CXX_FLAGS_RELEASE "-O3")  # no -DNDEBUG: assertions check interfaces, not kernels
  # -g1: line numbers for debuggers and sanitizers. Variables are visible only in a Debug build, because -g doubles the
  # compile time of kernels.
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
  find_program(TARSUS_CCACHE ccache)
  if(TARSUS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Settings that ccache requires with precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TARSUS_CCACHE})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      add_compile_options(-fpch-preprocess)
    endif()
  endif()
endif()

# With __ARM_FEATURE_FMA, Eigen fuses multiplications with additions on 64-bit Arm, which it does not on x86-64. Without
# it both give the same bits (docs/decisions/0006). Kernels fuse explicitly and do not depend on the macro.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  add_compile_options(-U__ARM_FEATURE_FMA)
endif()

if(TARSUS_SANITIZE)
  add_compile_options(-fsanitize=${TARSUS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TARSUS_SANITIZE})
endif()

# Contraction is off so that SIMD lanes and scalars round alike (docs/decisions/0002); kernels use fused multiply-adds
# explicitly. The other two options let the compiler ignore errno and the floating-point exception flags, which no code
# here reads.
function(tarsus_compile_options TARGET)
  target_compile_options(${TARGET} PRIVATE -Wall -Wextra -ffp-contract=off -fno-math-errno -fno-trapping-math)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # less frequent garbage collection saves 8 % of compile time
    target_compile_options(${TARGET} PRIVATE "SHELL:--param ggc-min-expand=200" "SHELL:--param ggc-min-heapsize=393216")
  endif()
  # By default GCC copies a few hundred bytes by a string instruction, whose start-up takes as long as the whole copy.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(STRATEGY vector_loop:640:noalign,libcall:-1:noalign)
    target_compile_options(${TARGET} PRIVATE -mmemset-strategy=${STRATEGY} -mmemcpy-strategy=${STRATEGY})
  endif()
  # GCC 12 wrongly warns of "overlapping" and overflowing copies inside std::string's operator+ (GCC bug 105651), and of
  # a write out of bounds inside fmt 9's parse_align, which the loop's bound excludes.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${TARGET} PRIVATE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  if(TARSUS_WERROR)
    target_compile_options(${TARGET} PRIVATE -Werror)
  endif()
endfunction()

# For code with little computation (files, tests, the command line): a third less compile time.
function(tarsus_compile_quickly TARGET)
  target_compile_options(${TARGET} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Headers of other libraries take half of a source's compile time, so they are precompiled once for each target. HEADERS
# are named as in #include. Sources still include what they use: tools/lint_headers.py compiles each header by itself.
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
