/* Memory that one pass leaves for the next.
 *
 * A pass needs a few megabytes. Taken from the system and given back at every step of training they
 * would be zeroed by the system each time, which costs as much as a tenth of a small step. So the
 * encoder keeps the last one; whoever takes it has it alone, and a second pass at the same time on
 * the same encoder takes new memory. */
#include "encoder/encoder.h"

#include <pthread.h>
#include <string.h>

struct fini_memory_pool {
    pthread_mutex_t mutex;
    void *memory;
    size_t size;
};

fin_status fini_memory_pool_create(fini_memory_pool **pool, fin_error *err)
{
    fini_memory_pool *s = *pool = fini_alloc(sizeof *s);
    if (!s)
        return fini_fail_memory(err, sizeof *s, "an encoder");
    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->mutex, NULL);
    return FIN_OK;
}

void fini_memory_pool_destroy(fini_memory_pool *s)
{
    if (!s)
        return;
    fini_free(s->memory);
    pthread_mutex_destroy(&s->mutex);
    fini_free(s);
}

void *fini_memory_pool_take(fini_memory_pool *s, size_t *size)
{
    pthread_mutex_lock(&s->mutex);
    void *memory = s->memory;
    size_t had = s->size;
    s->memory = NULL;
    s->size = 0;
    pthread_mutex_unlock(&s->mutex);
    /* Much more than is needed is given back, too: one long sequence is not paid for forever. */
    if (memory && had >= *size && had / 4 <= *size) {
        *size = had;
        return memory;
    }
    fini_free(memory);
    return fini_alloc(*size);
}

void fini_memory_pool_give(fini_memory_pool *s, void *memory, size_t size)
{
    pthread_mutex_lock(&s->mutex);
    void *other = s->memory;
    s->memory = memory;
    s->size = size;
    pthread_mutex_unlock(&s->mutex);
    fini_free(other);
}
