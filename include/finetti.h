/* finetti: an attention layer as a statistical estimator. Everything public, in one include. */
#ifndef FINETTI_H
#define FINETTI_H

#include "finetti/attention.h"
#include "finetti/bags.h"
#include "finetti/base.h"
#include "finetti/command.h"
#include "finetti/command_train.h"
#include "finetti/context.h"
#include "finetti/context_tune.h"
#include "finetti/data.h"
#include "finetti/data_bags.h"
#include "finetti/data_encoder.h"
#include "finetti/encoder.h"
#include "finetti/encoder_learn.h"
#include "finetti/encoder_probe.h"
#include "finetti/family.h"
#include "finetti/kernel.h"
#include "finetti/math.h"
#include "finetti/random.h"
#include "finetti/report.h"
#include "finetti/store.h"
#include "finetti/study.h"
#include "finetti/task.h"
#include "finetti/text.h"
#include "finetti/theory.h"
#include "finetti/theory_latent.h"
#include "finetti/train.h"

#endif
