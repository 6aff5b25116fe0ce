# Tests, by pattern:
#   tests/test_*.c    one program and one test each, with cmocka and the static library, so that
#                     functions that are internal to the library (fini_) can be tested too
#   tests/cli/*.sh    the command line tool, run by bash
#   tests/all/*.sh    what is too slow for every day, label "all" (all others: "lean")
# Scripts get FINETTI (the tool), SRC (the source tree), BUILD (the build tree) and PYTHON.

add_custom_target(tests)
add_dependencies(tests product examples)

set(test_environment)
if(FINETTI_SANITIZE)
  # Asking for more memory than there is must be answered by NULL here as elsewhere.
  list(APPEND test_environment ASAN_OPTIONS=allocator_may_return_null=1
       UBSAN_OPTIONS=print_stacktrace=1)
endif()
set(script_environment ${test_environment}
  FINETTI=${PROJECT_BINARY_DIR}/finetti SRC=${PROJECT_SOURCE_DIR} BUILD=${PROJECT_BINARY_DIR}
  PYTHON=${FINETTI_PYTHON})

# ---- unit tests --------------------------------------------------------------------------------

file(GLOB test_sources CONFIGURE_DEPENDS tests/test_*.c)
if(test_sources AND NOT cmocka_FOUND)
  message(STATUS "cmocka was not found: the unit tests are left out (Debian: libcmocka-dev)")
  set(test_sources)
endif()
foreach(source IN LISTS test_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE src tests)
  target_compile_definitions(${name} PRIVATE ${kernel_definitions}
    FIN_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  target_link_libraries(${name} PRIVATE finetti_static PkgConfig::cmocka ${finetti_needs})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_dependencies(tests ${name})
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  set_tests_properties(${name} PROPERTIES LABELS lean TIMEOUT 300
    ENVIRONMENT "${test_environment}")
endforeach()

# ---- scripts -----------------------------------------------------------------------------------

foreach(folder IN ITEMS cli all)
  set(label lean)
  set(timeout 300)
  if(folder STREQUAL all)
    set(label all)
    set(timeout 900)
  endif()
  file(GLOB scripts CONFIGURE_DEPENDS tests/${folder}/*.sh)
  foreach(script IN LISTS scripts)
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME ${folder}_${name} COMMAND bash ${script} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    # A script that cannot run here says why and exits with 77.
    set_tests_properties(${folder}_${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout} SKIP_RETURN_CODE 77
      ENVIRONMENT "${script_environment}")
  endforeach()
endforeach()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

# ---- what holds for the tree as a whole --------------------------------------------------------

# Every public header by itself, as C and as C++.
add_test(NAME headers
  COMMAND ${CMAKE_COMMAND} -D CC=${CMAKE_C_COMPILER} -D SRC=${PROJECT_SOURCE_DIR}
          -P ${PROJECT_SOURCE_DIR}/cmake/check_headers.cmake)
# A room uses the rooms above it only.
add_test(NAME rooms
  COMMAND ${CMAKE_COMMAND} -D SRC=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/check_rooms.cmake)
# An installed library can be used through find_package and through pkg-config.
add_test(NAME consumer
  COMMAND ${CMAKE_COMMAND} -D CC=${CMAKE_C_COMPILER} -D "SANITIZE=${FINETTI_SANITIZE}"
          -D SRC=${PROJECT_SOURCE_DIR} -D BUILD=${PROJECT_BINARY_DIR}
          -P ${PROJECT_SOURCE_DIR}/tests/consumer/run.cmake)
set_tests_properties(headers rooms consumer PROPERTIES LABELS lean TIMEOUT 300)
set_tests_properties(consumer PROPERTIES ENVIRONMENT "${test_environment}")
if(NOT FINETTI_SANITIZE)
  # The shared library shows fin_ names only, the static one fin_ and fini_.
  add_test(NAME symbols
    COMMAND ${CMAKE_COMMAND} -D NM=${CMAKE_NM} -D SHARED=$<TARGET_FILE:finetti_shared>
            -D STATIC=$<TARGET_FILE:finetti_static> -P ${PROJECT_SOURCE_DIR}/cmake/check_symbols.cmake)
  set_tests_properties(symbols PROPERTIES LABELS lean TIMEOUT 60)
endif()

# ---- fuzzing -----------------------------------------------------------------------------------

# Harnesses of libFuzzer, built by tests/fuzz/run.sh; tests/test_data_fuzz.c replays their corpus.
if(FINETTI_SANITIZE MATCHES "fuzzer-no-link")
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
endif()
