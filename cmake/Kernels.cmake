# Kernels for one instruction set: src/kernel/*_avx2.c and *_avx512.c.
#
# Each such file, and no other, is compiled with the flags of its instruction set; which one runs
# is chosen at run time. Where processor family or compiler lack them, the files are left out.
# FINI_KERNEL_AVX2 and FINI_KERNEL_AVX512 are defined (to 1, for all sources) when they are in.
include(CheckCCompilerFlag)

set(kernel_flags_avx2 -O3 -mavx2 -mfma) # -O3: unroll short loops of known length
set(kernel_flags_avx512 -O3 -mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma)
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
  list(APPEND kernel_flags_avx512 -mprefer-vector-width=512)
endif()

set(kernel_definitions)
foreach(set IN ITEMS avx2 avx512)
  set(files ${library_sources})
  list(FILTER files INCLUDE REGEX "/src/kernel/[^/]*_${set}\\.c$")
  if(NOT files)
    continue()
  endif()
  string(TOUPPER ${set} SET)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    list(JOIN kernel_flags_${set} " " flags)
    check_c_compiler_flag("${flags}" FINETTI_COMPILES_${SET})
  endif()
  if(FINETTI_COMPILES_${SET})
    set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${kernel_flags_${set}}")
    list(APPEND kernel_definitions FINI_KERNEL_${SET}=1)
  else()
    message(STATUS "kernels for ${set} are left out")
    list(REMOVE_ITEM library_sources ${files})
  endif()
endforeach()
