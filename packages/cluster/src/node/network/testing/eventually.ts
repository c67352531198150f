import { vi } from 'vitest'

/** Until it holds; the limit is for busy machines only. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 30_000, interval: 25 })
}
