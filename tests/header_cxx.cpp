/* A public header must compile by itself, as C++ and as C, without a warning. Compiled once per
 * header by cmake/check_headers.cmake; by itself it takes the umbrella. */
#ifndef FINETTI_HEADER
#define FINETTI_HEADER <finetti.h>
#endif
#include FINETTI_HEADER
#include FINETTI_HEADER /* twice: the include guard */

#ifdef FINETTI_BASE_H
int finetti_header_check(void);
int finetti_header_check(void) { return fin_version()[0] == '0' ? FIN_OK : FIN_ERR_ARGUMENT; }
#endif
