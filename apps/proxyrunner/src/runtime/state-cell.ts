import type { WorkloadState } from './runtime.ts'

/** A state with those who want to know of its changes. */
export interface StateCell {
  readonly current: WorkloadState
  /** Tells the listeners only when something is different. */
  set(change: Partial<WorkloadState>): void
  onChange(listener: () => void): () => void
}

/** `onError` receives what a listener throws; the others are called all the same. */
export function createStateCell(initial: WorkloadState, onError: (error: unknown) => void): StateCell {
  const listeners = new Set<() => void>()
  let current = initial
  return {
    get current() {
      return current
    },
    set(change) {
      const next = { ...current, ...change }
      if (next.ready === current.ready && next.message === current.message && next.generation === current.generation) return
      current = next
      for (const listener of [...listeners]) {
        try {
          listener()
        } catch (error) {
          onError(error)
        }
      }
    },
    onChange(listener) {
      const own = () => listener() // the same function given twice is two listeners
      listeners.add(own)
      return () => void listeners.delete(own)
    },
  }
}
