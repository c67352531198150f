import { ThvError } from '@thv/kernel/errors'
import type { CallOptions, KubeClient } from '../client/client.ts'
import { KubeApiError } from '../client/kube-api-error.ts'
import type { Lease } from '../objects/builtin-kinds.ts'
import type { KubeObject, ResourceType } from '../objects/types.ts'

/** One Lease on a server in memory: compare-and-swap by resourceVersion, and faults on demand. */
export class LeaseApi {
  lease: Lease | undefined
  writes = 0
  reads = 0
  #version = 0

  /** Each candidate has a line of its own to the server. */
  line(): LeaseLine {
    const line: LeaseLine = { down: false, frozen: undefined, loseAnswers: false, client: undefined as never }
    const call = async <T>(options: CallOptions, act: () => T): Promise<T> => {
      options.signal?.throwIfAborted()
      if (line.frozen) await untilAbort(line.frozen.promise, options.signal)
      if (line.down) throw new ThvError('kube_unreachable', 'connection refused')
      await Promise.resolve()
      const result = act()
      if (line.loseAnswers) throw new ThvError('kube_unreachable', 'reset')
      return structuredClone(result)
    }
    line.client = {
      tryGet: <T extends KubeObject>(_type: ResourceType<T>, _key: unknown, options: CallOptions = {}) =>
        call(options, () => {
          this.reads++
          return this.lease as T | undefined
        }),
      create: <T extends KubeObject>(_type: ResourceType<T>, object: T, options: CallOptions = {}) =>
        call(options, () => {
          if (this.lease) throw refusal(409, 'AlreadyExists')
          return this.#store(object) as unknown as T
        }),
      update: <T extends KubeObject>(_type: ResourceType<T>, object: T, options: CallOptions = {}) =>
        call(options, () => {
          if (!this.lease) throw refusal(404, 'NotFound')
          if (object.metadata.resourceVersion !== this.lease.metadata.resourceVersion) throw refusal(409, 'Conflict')
          return this.#store(object) as unknown as T
        }),
    }
    return line
  }

  steal(holderIdentity: string): void {
    const spec = { ...this.lease?.spec, holderIdentity, renewTime: `stolen by ${holderIdentity}` }
    const stolen: Lease = { metadata: { name: 'x' }, spec }
    this.#store(stolen)
  }

  #store(object: KubeObject): Lease {
    this.writes++
    this.lease = structuredClone({ ...object, metadata: { ...object.metadata, resourceVersion: String(++this.#version) } }) as Lease
    return this.lease
  }
}

export interface LeaseLine {
  client: Pick<KubeClient, 'tryGet' | 'create' | 'update'>
  down: boolean
  /** Calls wait for it; what they do is done only then. */
  frozen: PromiseWithResolvers<void> | undefined
  /** Carried out, but the caller never hears of it. */
  loseAnswers: boolean
}

function untilAbort(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    promise.then(resolve)
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

function refusal(status: number, reason: string): KubeApiError {
  return new KubeApiError({ call: { verb: 'update', target: 'leases' }, status, body: { reason } })
}
