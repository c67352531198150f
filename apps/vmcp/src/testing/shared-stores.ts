import { createMemorySessionStore } from '@thv/store/memory-session-store'
import type { JsonValue, SessionStore } from '@thv/store/session-store'
import type { VmcpServerOptions } from '../vmcp-server.ts'

export interface SharedStores extends NonNullable<VmcpServerOptions['stores']> {
  size(part: string): Promise<number>
}

/** Stores that servers in this process share as replicas share a Redis. They outlive each of the servers. */
export function sharedStores(): SharedStores {
  const stores = new Map<string, SessionStore<JsonValue>>()
  const storeOf = (part: string) => {
    const store = stores.get(part) ?? createMemorySessionStore<JsonValue>()
    stores.set(part, store)
    return store
  }
  return {
    sessions: <T extends JsonValue>(part = '') => ({ ...storeOf(part), close: async () => undefined }) as unknown as SessionStore<T>,
    size: (part) => storeOf(part).size(),
  }
}
