# Kernels are compiled once for each instruction set and precision. A program contains all of them and chooses at run
# time (include/tarsus/math/kernels.hpp). This file writes their sources into the build tree; a new table of kernels
# needs only a line in TARSUS_KERNEL_TABLES. tools/lint_isa.py checks the objects: no symbol that other code shares may
# contain code for a newer instruction set.
set(TARSUS_ISA_FLAGS_baseline)
set(TARSUS_ISA_FLAGS_avx2 -mavx2 -mfma)
set(TARSUS_ISA_FLAGS_avx512 -mavx512f -mavx512dq -mavx512vl -mavx2 -mfma)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # GCC 12 warns inside its own avx512fintrin.h (its bug 105593)
  list(APPEND TARSUS_ISA_FLAGS_avx512 -Wno-maybe-uninitialized -Wno-uninitialized)
endif()

# Kernels are straight-line algebra on small structures of T. GCC must split these structures into scalars whatever
# their size (by default it copies a pack's Mat3 with memcpy: 25 % of ABA in lanes). It must not combine a scalar
# kernel's stores into vectors whose elements are then loaded one by one (8 %).
set(TARSUS_KERNEL_FLAGS $<$<CONFIG:Release>:-O3>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND TARSUS_KERNEL_FLAGS -fno-tree-slp-vectorize --param=sra-max-scalarization-size-Ospeed=100000)
endif()
if(TARSUS_SANITIZE)  # the checks make kernels so large that each file would take half an hour to compile
  set(TARSUS_KERNEL_FLAGS -O1)
endif()

# The instruction sets of this build, in TARSUS_ISA_SETS. isa_level() (src/math/cpu.cpp) chooses among them.
set(TARSUS_ISA "all" CACHE STRING "Instruction sets to build kernels for: all, native (the best of this machine alone), \
or a list of baseline, avx2 and avx512")
set(TARSUS_ALL_ISA_SETS baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND TARSUS_ALL_ISA_SETS avx2 avx512)
endif()
set(TARSUS_ISA_SETS ${TARSUS_ISA})
if(TARSUS_ISA STREQUAL "all")
  set(TARSUS_ISA_SETS ${TARSUS_ALL_ISA_SETS})
elseif(TARSUS_ISA STREQUAL "native")
  set(TARSUS_ISA_SETS baseline)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null
                  OUTPUT_VARIABLE NATIVE_MACROS ERROR_QUIET)
  if(NATIVE_MACROS MATCHES "__AVX512F__" AND NATIVE_MACROS MATCHES "__AVX512DQ__" AND NATIVE_MACROS MATCHES "__AVX512VL__")
    set(TARSUS_ISA_SETS avx512)
  elseif(NATIVE_MACROS MATCHES "__AVX2__" AND NATIVE_MACROS MATCHES "__FMA__")
    set(TARSUS_ISA_SETS avx2)
  endif()
endif()
foreach(ISA IN LISTS TARSUS_ISA_SETS)
  if(NOT ISA IN_LIST TARSUS_ALL_ISA_SETS)
    message(FATAL_ERROR "TARSUS_ISA is \"${TARSUS_ISA}\": expected all, native, or some of ${TARSUS_ALL_ISA_SETS}")
  endif()
endforeach()

# Tables of kernels: the .inl in src/ that ends in TARSUS_FILL_KERNELS, the table's header, its type (REAL stands for
# the precision), its precisions and its instruction sets.
set(TARSUS_KERNEL_TABLES
    "dynamics/kernels.inl|dynamics/kernel_table.hpp|KernelTable<REAL>|double float|baseline avx2 avx512"
    "dynamics/delassus.inl|dynamics/delassus_table.hpp|DelassusTable<REAL>|double float|baseline avx2 avx512"
    "control/kernels.inl|control/kernel_table.hpp|ControlTable<REAL>|double float|baseline avx2 avx512"
    "constraint/kernels.inl|constraint/kernel_table.hpp|ConstraintTable<REAL>|double float|baseline avx2 avx512"
    "learn/kernels.inl|learn/kernel_table.hpp|LearnTable<REAL>|double float|baseline avx2 avx512"
    "solver/body_contact_kernels.inl|solver/body_contact_kernels.hpp|ContactKernels<REAL>|double float|baseline avx2"
    "solver/sliding.inl|solver/sliding.hpp|SlidingTable|double|baseline avx2 avx512"
    "solver/relax.inl|solver/relax.hpp|RelaxTable|double|baseline avx2 avx512"
    "geometry/sweep.inl|geometry/sweep.hpp|SweepKernels|double|baseline avx2"
    "particles/kernels.inl|particles/kernels.hpp|ParticleKernels|double|baseline avx2"
    "particles/site_kernel.inl|particles/site_kernel.hpp|SiteKernels|double|baseline avx2 avx512")
set(TARSUS_BASELINE_TABLES
    "baselines/kernels.inl|baselines/kernel_table.hpp|BaselineTable<REAL>|double float|baseline avx2 avx512")

# Adds to the list SOURCES_NAME the sources that instantiate TABLES, and the source that chooses among the instances.
# There is one source for each table, instruction set and precision. With TARSUS_UNITY, one source called GROUP contains
# all tables of an instruction set and precision (a quarter less to compile, since kernels share passes).
function(tarsus_kernels SOURCES_NAME GROUP TABLES)
  set(NAMES)
  set(HEADERS)
  set(CHOICES)
  foreach(LINE IN LISTS TABLES)
    string(REPLACE "|" ";" FIELDS "${LINE}")
    list(GET FIELDS 0 FILE)
    list(GET FIELDS 1 HEADER)
    list(GET FIELDS 2 TABLE)
    list(GET FIELDS 3 PRECISIONS)
    list(GET FIELDS 4 SETS)
    separate_arguments(PRECISIONS)
    separate_arguments(SETS)
    string(APPEND HEADERS "#include \"${HEADER}\"\n")
    # A table without an avx512 instance is built for avx2.
    set(BUILT ${TARSUS_ISA_SETS})
    if("avx512" IN_LIST BUILT AND NOT "avx512" IN_LIST SETS)
      list(APPEND BUILT avx2)
    endif()
    foreach(PRECISION IN LISTS PRECISIONS)
      string(REPLACE "REAL" ${PRECISION} TYPE ${TABLE})
      if(TARSUS_DOUBLE_ONLY AND PRECISION STREQUAL "float")
        string(APPEND CHOICES "TARSUS_NO_KERNELS(${TYPE})\n")
        continue()
      endif()
      set(CHOICE)
      foreach(ISA IN LISTS SETS)
        if(NOT ISA IN_LIST BUILT)
          continue()
        endif()
        set(STEM ${GROUP})
        if(NOT TARSUS_UNITY)
          string(REGEX REPLACE "[.]inl$" "" STEM ${FILE})
          string(REPLACE "/" "_" STEM ${STEM})
        endif()
        set(NAME ${STEM}_${ISA}_${PRECISION})
        string(APPEND INCLUDES_${NAME} "#include \"${FILE}\"\n")
        string(APPEND TABLES_${NAME} "template tarsus::${TYPE} tarsus::isa_${ISA}::make_table(bool);\n")
        string(PREPEND CHOICE "  TARSUS_KERNELS_FOR(${ISA})")
        set(ISA_${NAME} ${ISA})
        list(APPEND NAMES ${NAME})
      endforeach()
      string(APPEND CHOICES "TARSUS_CHOOSE_KERNELS(${TYPE}, ${CHOICE})\n")
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES NAMES)
  set(SOURCES ${${SOURCES_NAME}})
  foreach(NAME IN LISTS NAMES)
    set(SOURCE ${PROJECT_BINARY_DIR}/kernels/${NAME}.cpp)
    file(CONFIGURE OUTPUT ${SOURCE} @ONLY CONTENT
         "// Written by cmake/TarsusKernels.cmake.\n${INCLUDES_${NAME}}#include \"math/kernel_instance.inl\"\n${TABLES_${NAME}}")
    set_source_files_properties(${SOURCE} PROPERTIES
      COMPILE_OPTIONS "${TARSUS_ISA_FLAGS_${ISA_${NAME}}};${TARSUS_KERNEL_FLAGS}"
      COMPILE_DEFINITIONS TARSUS_ISA=isa_${ISA_${NAME}}
      SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
    list(APPEND SOURCES ${SOURCE})
  endforeach()
  # Only two sources depend on the instruction sets of this build, so that adding a set recompiles nothing else.
  set(SOURCE ${PROJECT_BINARY_DIR}/kernels/choose_${GROUP}.cpp)
  file(CONFIGURE OUTPUT ${SOURCE} @ONLY CONTENT
       "// Written by cmake/TarsusKernels.cmake.\n${HEADERS}#include \"math/kernel_choice.inl\"\n${CHOICES}")
  list(APPEND SOURCES ${SOURCE})
  set(DEFINITIONS ${TARSUS_ISA_SETS})
  list(TRANSFORM DEFINITIONS PREPEND TARSUS_HAS_)
  set_source_files_properties(${SOURCE} ${PROJECT_SOURCE_DIR}/src/math/cpu.cpp PROPERTIES
                              COMPILE_DEFINITIONS "${DEFINITIONS}" SKIP_UNITY_BUILD_INCLUSION ON)
  set(${SOURCES_NAME} ${SOURCES} PARENT_SCOPE)
endfunction()
