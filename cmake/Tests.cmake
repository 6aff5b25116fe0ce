# Tests, by pattern:
#   tests/test_<module>_<thing>.c   one test each, with cmocka and the static library, so that functions that are
#                                   internal to the library (fini_) can be tested too; the files of a module are
#                                   linked into one program, tests/test_<module>
#   tests/cli/*.sh    the command line tool, run by bash
#   tests/all/*.sh    what is too slow for every day, label "all" (all others: "lean")
#   tests/long/*.sh   what takes minutes by nature, label "long": `make check-long`
# Scripts get FINETTI (the tool), SRC (the source tree), BUILD (the build tree) and PYTHON. What cannot run says
# "SKIPPED: why" and ends with 77; tests/run.sh compares that with tests/skips.txt.

add_custom_target(tests)
add_dependencies(tests product examples)

# Two tests run at a time on two processors, so that each has one thread, unless it asks for more; those who wait for
# others sleep.
set(test_environment FINETTI_THREADS=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive)
# The tool makes OpenBLAS use all of a CPU that it does not know, and Python cannot: the same for both, or bits would differ.
if(EXISTS /proc/cpuinfo AND NOT CMAKE_CROSSCOMPILING)
  file(STRINGS /proc/cpuinfo cpu REGEX "avx512dq")
  if(cpu MATCHES "avx512dq" AND cpu MATCHES "avx512vl")
    list(APPEND test_environment OPENBLAS_CORETYPE=SkylakeX)
  endif()
endif()
if(FINETTI_SANITIZE)
  # Asking for more memory than there is must be answered by NULL here as elsewhere.
  list(APPEND test_environment ASAN_OPTIONS=allocator_may_return_null=1
       UBSAN_OPTIONS=print_stacktrace=1 FINETTI_TEST_SIZE=small
       LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0)
endif()
if(FINETTI_SANITIZE MATCHES "thread")
  # A race whose first half is out of the history is not reported: the longest.
  set(tsan_options suppressions="${PROJECT_SOURCE_DIR}/tests/tsan.supp":history_size=7)
  list(APPEND test_environment OMP_TOOL_LIBRARIES=${FINETTI_ARCHER}
       TSAN_OPTIONS=${tsan_options}:allocator_may_return_null=1)
endif()
# A locale with a decimal comma, of our own, where the system has the text of one.
find_program(localedef localedef)
if(localedef AND EXISTS /usr/share/i18n/locales/de_DE)
  set(locale_dir ${PROJECT_BINARY_DIR}/tests/locale)
  if(NOT EXISTS ${locale_dir}/de_DE.utf8)
    file(MAKE_DIRECTORY ${locale_dir})
    execute_process(COMMAND ${localedef} -i de_DE -f UTF-8 ${locale_dir}/de_DE.utf8 OUTPUT_QUIET ERROR_QUIET)
  endif()
  list(APPEND test_environment LOCPATH=${locale_dir})
endif()
set(script_environment ${test_environment}
  FINETTI=${PROJECT_BINARY_DIR}/finetti SRC=${PROJECT_SOURCE_DIR} BUILD=${PROJECT_BINARY_DIR}
  PYTHON=${FINETTI_PYTHON})

# A test that stands for those that cannot be built here: skipped, and so heard of.
function(leave_out name reason)
  message(STATUS "${name} is left out: ${reason}")
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: ${reason}")
  set_tests_properties(${name} PROPERTIES LABELS lean SKIP_REGULAR_EXPRESSION "SKIPPED")
endfunction()

# In an emulator everything takes twenty times as long.
set(unit_timeout 300)
if(CMAKE_CROSSCOMPILING)
  set(unit_timeout 7200)
endif()

# ---- unit tests --------------------------------------------------------------------------------

file(GLOB test_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/tests tests/test_*.c)
if(test_sources AND NOT cmocka_FOUND)
  leave_out(test_all "cmocka was not found (Debian: libcmocka-dev)")
  set(test_sources)
endif()
if(FINETTI_SANITIZE MATCHES "thread") # what several threads do at once, and no more, for the time it takes to build
  list(FILTER test_sources INCLUDE REGEX "_races\\.c$|^test_study_run\\.c$")
endif()
set(test_modules ${test_sources})
list(TRANSFORM test_modules REPLACE "^(test_[a-z0-9]+)_.*" "\\1")
list(REMOVE_DUPLICATES test_modules)
foreach(module IN LISTS test_modules)
  set(sources ${test_sources})
  list(FILTER sources INCLUDE REGEX "^${module}_")
  add_executable(${module} ${PROJECT_BINARY_DIR}/tests/${module}.c)
  target_include_directories(${module} PRIVATE src tests)
  target_compile_definitions(${module} PRIVATE ${kernel_definitions}
    FIN_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  target_link_libraries(${module} PRIVATE finetti_static PkgConfig::cmocka ${finetti_needs})
  set_target_properties(${module} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_dependencies(tests ${module})
  set(declarations)
  set(rows)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    target_sources(${module} PRIVATE tests/${source})
    # Each file is a program of its own, with a main; here it is one of many. -O1: building is longer than running.
    set_source_files_properties(tests/${source} PROPERTIES
      COMPILE_DEFINITIONS main=${name}_main COMPILE_OPTIONS "-Wno-missing-prototypes;-O1;$<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")
    string(APPEND declarations "int ${name}_main(void);\n")
    string(APPEND rows "    {\"${name}\", ${name}_main},\n")
    add_test(NAME ${name} COMMAND ${module} ${name} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    set_tests_properties(${name} PROPERTIES LABELS lean TIMEOUT ${unit_timeout} ENVIRONMENT "${test_environment}")
  endforeach()
  configure_file(cmake/test_main.c.in ${PROJECT_BINARY_DIR}/tests/${module}.c @ONLY)
endforeach()

# ---- scripts -----------------------------------------------------------------------------------

foreach(folder IN ITEMS cli all long)
  set(label ${folder})
  set(timeout 900)
  if(folder STREQUAL cli)
    set(label lean)
    set(timeout 300)
  elseif(folder STREQUAL long)
    set(timeout 7200)
  endif()
  file(GLOB scripts CONFIGURE_DEPENDS tests/${folder}/*.sh)
  foreach(script IN LISTS scripts)
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME ${folder}_${name} COMMAND bash ${script} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    set_tests_properties(${folder}_${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout} SKIP_RETURN_CODE 77
      ENVIRONMENT "${script_environment}")
  endforeach()
endforeach()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
# These have several threads or ranks for long.
set_tests_properties(all_study_kill all_study_mpi all_fit_mpi all_fit_ranks all_encoder_mpi
  long_fit_mil long_fit_mnist long_encoder_images PROPERTIES PROCESSORS 2)
# All claims are run once, on two processors; the browser looks at the report that this leaves.
set_tests_properties(all_reproduce PROPERTIES FIXTURES_SETUP reproduced PROCESSORS 2 COST 2000)
set_tests_properties(all_report_browser PROPERTIES FIXTURES_REQUIRED reproduced COST 1000)
# The longest first, so that no processor waits for the last one; ctest knows no times in a fresh clone.
foreach(pair IN ITEMS all_explore:900 all_failmalloc:300 all_perturb:250 all_new_rows:250 all_valgrind:250 all_fit_browser:150
        all_install:100 cli_limits:500 cli_fit:400 cli_train:400 cli_reproduce:300 cli_explain:250 cli_errors:250
        cli_predict:200 cli_attend:150 cli_memory:150 cli_lab:150 cli_fit_columns:150 test_bags_bytes:100
        test_bags_curve:100 test_bags_bayes:100 test_bags_cancel:100 test_study_run:100)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 cost)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES COST ${cost})
  endif()
endforeach()
# ---- what holds for the tree as a whole --------------------------------------------------------

# Every public header by itself, as C and as C++.
add_test(NAME headers
  COMMAND ${CMAKE_COMMAND} -D CC=${CMAKE_C_COMPILER} -D SRC=${PROJECT_SOURCE_DIR}
          -P ${PROJECT_SOURCE_DIR}/cmake/check_headers.cmake)
# A module uses the modules above it only.
add_test(NAME modules
  COMMAND ${CMAKE_COMMAND} -D SRC=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/check_modules.cmake)
# An installed library can be used through find_package and through pkg-config.
add_test(NAME consumer
  COMMAND ${CMAKE_COMMAND} -D CC=${CMAKE_C_COMPILER} -D "SANITIZE=${FINETTI_SANITIZE}"
          -D SRC=${PROJECT_SOURCE_DIR} -D BUILD=${PROJECT_BINARY_DIR}
          -P ${PROJECT_SOURCE_DIR}/tests/consumer/run.cmake)
set_tests_properties(headers modules consumer PROPERTIES LABELS lean TIMEOUT 300)
set_tests_properties(consumer PROPERTIES ENVIRONMENT "${test_environment}")
if(NOT FINETTI_SANITIZE)
  # The shared library shows fin_ names only, those of tests/abi.txt, the static one fin_ and fini_.
  add_test(NAME symbols
    COMMAND ${CMAKE_COMMAND} -D NM=${CMAKE_NM} -D SHARED=$<TARGET_FILE:finetti_shared>
            -D STATIC=$<TARGET_FILE:finetti_static> -D LIST=${PROJECT_SOURCE_DIR}/tests/abi.txt -P ${PROJECT_SOURCE_DIR}/cmake/check_symbols.cmake)
  set_tests_properties(symbols PROPERTIES LABELS lean TIMEOUT 60)
endif()

# ---- fuzzing -----------------------------------------------------------------------------------

# Harnesses of libFuzzer, built by tests/fuzz/run.sh; tests/test_data_fuzz.c and tests/test_cli_fuzz.c
# replay their corpus. That of the tool includes two of its files, and is linked with the others.
function(link_cli program)
  target_sources(${program} PRIVATE
    "$<FILTER:$<TARGET_OBJECTS:finetti_cli>,EXCLUDE,/(main|sweep)[.]c[.]o$>")
  target_include_directories(${program} PRIVATE cli)
  target_link_libraries(${program} PRIVATE PkgConfig::jansson)
endfunction()
if(TARGET test_cli)
  link_cli(test_cli)
endif()
if(FINETTI_SANITIZE MATCHES "fuzzer-no-link")
  # clang takes many minutes to watch the arithmetic of the vector kernels; their memory is watched.
  file(GLOB vector_kernels CONFIGURE_DEPENDS src/kernel/*_avx2.c src/kernel/*_avx512.c)
  set_property(SOURCE ${vector_kernels} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=undefined)
  file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
  add_custom_target(fuzz)
  foreach(source IN LISTS fuzz_sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
    target_include_directories(${name} PRIVATE src tests)
    target_link_libraries(${name} PRIVATE finetti_static ${finetti_needs})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
    add_dependencies(fuzz ${name})
  endforeach()
  link_cli(fuzz_cli)
endif()

# The calls of the page, natively, beside the WebAssembly module (tests/all/explore.sh).
if(TARGET web)
  add_executable(web_native tests/browser/native.c ${PROJECT_SOURCE_DIR}/web/call.c ${PROJECT_SOURCE_DIR}/web/context.c
                 ${PROJECT_SOURCE_DIR}/web/descent.c ${PROJECT_SOURCE_DIR}/web/token.c)
  target_include_directories(web_native PRIVATE src web)
  target_link_libraries(web_native PRIVATE finetti_static ${finetti_needs})
  set_target_properties(web_native PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_dependencies(tests web_native web)
endif()
