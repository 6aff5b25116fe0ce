/* The page has one thread: what is left of POSIX threads. */
#ifndef FINETTI_WEB_PTHREAD_H
#define FINETTI_WEB_PTHREAD_H

typedef int pthread_once_t;
typedef int pthread_mutex_t;
#define PTHREAD_ONCE_INIT 0
#define PTHREAD_MUTEX_INITIALIZER 0

static inline int pthread_once(pthread_once_t *once, void (*start)(void))
{
    if (!*once) {
        *once = 1;
        start();
    }
    return 0;
}
static inline int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}
static inline int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

#endif
