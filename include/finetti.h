/* finetti: an attention layer as a statistical estimator. Everything public, in one include. */
#ifndef FINETTI_H
#define FINETTI_H

#include "finetti/attention.h"
#include "finetti/base.h"
#include "finetti/data.h"
#include "finetti/kernel.h"
#include "finetti/math.h"
#include "finetti/random.h"
#include "finetti/report.h"
#include "finetti/study.h"
#include "finetti/task.h"
#include "finetti/theory.h"
#include "finetti/train.h"

#endif
