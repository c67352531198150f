import type { JsonObject } from '../wire/json-rpc.ts'

export type ListKind = 'tools' | 'prompts' | 'resources'

export type Change =
  | { readonly kind: 'list'; readonly list: ListKind }
  | { readonly kind: 'resource'; readonly uri: string }
  | { readonly kind: 'task'; readonly taskId: string; readonly task: JsonObject }

export type ChangeListener = (change: Change) => void

/** Changes in the fixture, for legacy sessions and modern listen streams to report to their clients. */
export interface ChangeBus {
  emit(change: Change): void
  /** Returns the call that ends the subscription. */
  on(listener: ChangeListener): () => void
  readonly listeners: number
}

export function createChangeBus(): ChangeBus {
  const listeners = new Set<ChangeListener>()
  return {
    emit: (change) => {
      for (const listener of [...listeners]) listener(change)
    },
    on: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    get listeners() {
      return listeners.size
    },
  }
}
