/**
 * Environment of our own programs, in the image and on the local platform. Node and malloc read it when a process starts.
 *
 * A small nursery: V8 would grow it to 64 MB for the garbage of concurrent requests and use a sixth of it. One malloc arena that is
 * trimmed: threads of V8's compiler would each keep their own. Other allocators ignore the last two.
 */
export const MEMORY_SETTINGS = {
  NODE_OPTIONS: '--max-semi-space-size=4',
  MALLOC_ARENA_MAX: '1',
  MALLOC_TRIM_THRESHOLD_: '65536',
} as const
