# Instruction sets by file name: a source called *_baseline_*.cpp, *_avx2_*.cpp or *_avx512_*.cpp is compiled with that set's
# flags and with TARSUS_ISA naming its inline namespace (include/tarsus/math/isa.hpp), so that one program holds them all
# and picks at run time. Every other source is compiled for the compiler's baseline. tools/lint_isa.py checks the objects:
# nothing compiled for a newer machine may be reachable under a name that other code shares.
set(TARSUS_ISA_FLAGS_baseline)
set(TARSUS_ISA_FLAGS_avx2 -mavx2 -mfma)
set(TARSUS_ISA_FLAGS_avx512 -mavx512f -mavx512dq -mavx512vl -mavx2 -mfma
    -Wno-maybe-uninitialized -Wno-uninitialized)  # GCC 12 warns inside its own avx512fintrin.h (its bug 105593)

# Kernels are straight-line algebra on small structures of T. GCC must take those structures apart however large they are
# (by default it copies a pack's Mat3 with memcpy: 25 % of ABA in lanes) and must not pair a scalar kernel's stores into
# vectors that are loaded singly again (8 %).
set(TARSUS_KERNEL_FLAGS)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(TARSUS_KERNEL_FLAGS -fno-tree-slp-vectorize --param=sra-max-scalarization-size-Ospeed=100000)
endif()

# Sets the properties of the sources named in LIST_NAME. Takes off the list what this build does not have: any such
# source on machines other than x86, and with TARSUS_DOUBLE_ONLY the float and AVX-512 kernels of the isa/ folders
# (include/tarsus/math/select_isa.hpp asks for neither).
function(tarsus_isa_sources LIST_NAME)
  set(KEPT)
  foreach(SOURCE IN LISTS ${LIST_NAME})
    get_filename_component(FILE_NAME ${SOURCE} NAME)
    set(ISA)
    if(FILE_NAME MATCHES "_(baseline|avx2|avx512)_")
      set(ISA ${CMAKE_MATCH_1})
    endif()
    if(TARSUS_DOUBLE_ONLY AND SOURCE MATCHES "/isa/[^/]*_(float|avx512)[^/]*$")
      continue()
    endif()
    if(NOT ISA)
      list(APPEND KEPT ${SOURCE})
    elseif(ISA STREQUAL "baseline")
      set_source_files_properties(${SOURCE} PROPERTIES COMPILE_OPTIONS "${TARSUS_KERNEL_FLAGS}")
      list(APPEND KEPT ${SOURCE})
    elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64|i[3-6]86)$")
      set_source_files_properties(${SOURCE} PROPERTIES COMPILE_OPTIONS "${TARSUS_ISA_FLAGS_${ISA}};${TARSUS_KERNEL_FLAGS}"
                                                       COMPILE_DEFINITIONS "TARSUS_ISA=isa_${ISA}")
      list(APPEND KEPT ${SOURCE})
    endif()
  endforeach()
  set(${LIST_NAME} ${KEPT} PARENT_SCOPE)
endfunction()
