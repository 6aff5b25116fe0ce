/* Private face of encoders in files: how settings, heads and tensors are called there
 * (checkpoint.c reads, checkpoint_write.c writes).
 *
 *     metadata   finetti = "encoder", version, written_by,
 *                setting.<field> of the encoder, inputs, values,
 *                head.<i> = "<name> <kind> <where> <size> <weight>",
 *                learn.<field> if learning is kept, entry.<key> what the caller gave
 *     tensors    those of the encoder by their own names (as torch would load them),
 *                scale.center, scale.scale, and those of the learning, learn.<name>
 *
 * A setting that a file does not have keeps its default, so that settings can be added without a new
 * version; one that this version does not know is refused, because the encoder would be another. */
#ifndef FINI_CHECKPOINT_H
#define FINI_CHECKPOINT_H

#include "data/tensors.h"
#include "finetti/data_encoder.h"

#define FINI_CHECKPOINT_LEARN "learn."
#define FINI_CHECKPOINT_SETTING "setting."
#define FINI_CHECKPOINT_ENTRY "entry."
#define FINI_CHECKPOINT_HEAD "head."

enum { FINI_HEAD_KINDS = 3, FINI_HEAD_PLACES = 2 };
extern const char *const fini_head_kinds[FINI_HEAD_KINDS]; /* by FIN_HEAD_VALUE ... */
extern const char *const fini_head_places[FINI_HEAD_PLACES];

#endif
