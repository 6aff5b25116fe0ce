/* The private faces of studies and stores together; each has a FINI_SHOWN of its own. */
#ifndef FUZZ_STUDY_H
#define FUZZ_STUDY_H

#include "fuzz.h"

#define FINI_SHOWN FUZZ_SHOWN_READ
#include "study/read.h"
#undef FINI_SHOWN
#define FINI_SHOWN FUZZ_SHOWN_STORE
#include "store/store.h"
#undef FINI_SHOWN

#endif
