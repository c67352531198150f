import { setTimeout as sleep } from 'node:timers/promises'
import { KubeApiError, type KubeClient, type ReflectorClient } from '@thv/kube'

/** Caches that hear of everything late, and the later the more there is to hear. */
export function slowReads(delayMs: number): (client: KubeClient) => ReflectorClient {
  return (client) => ({
    list: client.list,
    listPages: client.listPages,
    watch: (type, options) => late(client.watch(type, options), delayMs),
  })
}

async function* late<T>(events: AsyncIterable<T>, delayMs: number): AsyncGenerator<T, void, undefined> {
  for await (const event of events) {
    await sleep(delayMs)
    yield event
  }
}

/** A share of the writes is refused: changes with a conflict, creations and deletions with an error of the server. */
export function refusedWrites(share: number, random: () => number): (client: KubeClient) => KubeClient {
  function guarded<A extends unknown[], R>(call: (...args: A) => Promise<R>, verb: string, status: number) {
    return async (...args: A): Promise<R> => {
      if (random() < share) throw refusal(verb, status)
      return await call(...args)
    }
  }
  return (client) => ({
    ...client,
    create: guarded(client.create, 'create', 500) as KubeClient['create'],
    update: guarded(client.update, 'update', 409) as KubeClient['update'],
    patch: guarded(client.patch, 'patch', 409) as KubeClient['patch'],
    delete: guarded(client.delete, 'delete', 500),
  })
}

function refusal(verb: string, status: number): KubeApiError {
  const reason = status === 409 ? 'Conflict' : 'InternalError'
  return new KubeApiError({ call: { verb, target: 'anything' }, status, body: { reason, message: 'refused by the test' } })
}

/** The same numbers in every run (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
