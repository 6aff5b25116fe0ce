# Files that travel inside the library: the shipped studies and what the HTML report is made of.
# One C file each, made when one of the files changes.

function(embed symbol)
  set(output ${PROJECT_BINARY_DIR}/embedded/${symbol}.c)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D SYMBOL=${symbol} -D OUTPUT=${output} "-DFILES=${ARGN}"
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
    VERBATIM)
  set(embedded_sources ${embedded_sources} ${output} PARENT_SCOPE)
endfunction()

set(embedded_sources)
file(GLOB shipped_studies CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/studies/*.yaml)
embed(fini_shipped ${shipped_studies})
file(GLOB report_assets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/report/assets/*)
embed(fini_assets ${report_assets})
embed(fini_explore ${web_page}) # empty where it is not built
