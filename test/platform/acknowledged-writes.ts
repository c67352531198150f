import { setTimeout as sleep } from 'node:timers/promises'
import { isThvError } from '@thv/kernel/errors'
import { configMaps, type KubeClient } from '@thv/kube'

/** Guarantees for clients after their server was killed. */
export interface AcknowledgedWrites {
  /** Writes until `signal`, as several clients at once. Resolves when all have stopped; rejects when a write is refused. */
  write(client: KubeClient, signal: AbortSignal): Promise<void>
  /** Differences between what the server has and what it had acknowledged. What it was asked and never answered may be either way. */
  compare(client: KubeClient): Promise<string[]>
  /** How many writes were acknowledged so far. */
  readonly count: number
}

interface State {
  readonly uid: string | undefined
  readonly value: string
}

interface Known {
  readonly acknowledged: State | undefined
  /** Sent and not answered. */
  readonly asked?: { readonly state: State | undefined }
}

const WRITERS = 12
const NAMES_EACH = 15
const LABELS = { written: 'by-many' }

export function acknowledgedWrites(namespace: string): AcknowledgedWrites {
  const known = new Map<string, Known>()
  let count = 0

  /** Creates what is not there; changes what is, or deletes every third of it. */
  async function writeOne(client: KubeClient, name: string, step: number): Promise<void> {
    const key = { namespace, name }
    const { acknowledged } = known.get(name) ?? { acknowledged: undefined }
    const value = `${step}-${Math.random()}`
    const wanted = acknowledged === undefined || step % 3 !== 0 ? { uid: acknowledged?.uid, value } : undefined
    known.set(name, { acknowledged, asked: { state: wanted } })
    let state: State | undefined
    if (wanted === undefined) await client.delete(configMaps, key)
    else if (acknowledged === undefined) {
      const { metadata } = await client.create(configMaps, { metadata: { ...key, labels: LABELS }, data: { value } })
      state = { uid: metadata.uid, value }
    } else {
      await client.patch(configMaps, key, { kind: 'merge', body: { data: { value } } })
      state = wanted
    }
    known.set(name, { acknowledged: state })
    count += 1
  }

  async function writer(client: KubeClient, index: number, signal: AbortSignal): Promise<void> {
    for (let step = 0; !signal.aborted; step++) {
      const name = `many-${index}-${step % NAMES_EACH}`
      // The fate of some is unknown: a busy machine may be slow to take a connection. They wait for `compare`.
      if (known.get(name)?.asked !== undefined) {
        await sleep(1)
        continue
      }
      await writeOne(client, name, step).catch((error: unknown) => {
        if (!signal.aborted && !isThvError(error, 'kube_unreachable')) throw error
      })
    }
  }

  return {
    async write(client, signal) {
      await Promise.all(Array.from({ length: WRITERS }, (_, index) => writer(client, index, signal)))
    },

    async compare(client) {
      const { items } = await client.listAll(configMaps, { namespace, labelSelector: 'written=by-many' })
      const there = new Map(items.map(({ metadata, data }) => [metadata.name, { uid: metadata.uid, value: data?.['value'] ?? '' }]))
      const problems = [...there.keys()].filter((name) => !known.has(name)).map((name) => `${name} exists but was never written`)
      for (const [name, { acknowledged, asked }] of known) {
        const actual = there.get(name)
        const fits = isSame(actual, acknowledged) || (asked !== undefined && isSame(actual, asked.state))
        if (!fits) problems.push(`${name} is ${JSON.stringify(actual)}, not ${JSON.stringify({ acknowledged, asked })}`)
        known.set(name, { acknowledged: actual })
      }
      return problems
    },

    get count() {
      return count
    },
  }
}

/** A client without an answer does not know the uid. */
function isSame(actual: State | undefined, wanted: State | undefined): boolean {
  if (actual === undefined || wanted === undefined) return actual === wanted
  return actual.value === wanted.value && (wanted.uid === undefined || wanted.uid === actual.uid)
}
