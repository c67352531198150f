import { Worker } from 'node:worker_threads'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import type { Logger } from '@thv/telemetry/log'
import type { ReleaseResult } from '@thv/telemetry/process-metrics'
import type { RegistryConfig } from '../config/registry-config.ts'
import { endsWithin } from '../sync/waker.ts'
import { levelOf } from './forwarding-logger.ts'
import type { Publication, ViewTarget } from './publication.ts'
import { type CallMethod, type FromWorker, receivedError, type ToWorker, type WorkerStart } from './worker-messages.ts'

export interface LinkOptions {
  readonly config: RegistryConfig
  /** Module that calls `runEngineWorker` when it finds itself in a worker. */
  readonly entry: URL
  readonly log: Logger
  readonly clock: Clock
  readonly onPublication: (publication: Publication) => void
  readonly onReleased: (result: ReleaseResult) => void
}

/** One worker, from its start to its end. */
export interface WorkerLink {
  /** Rejects if it cannot start. */
  readonly ready: Promise<void>
  /** Resolves with why, however it came. */
  readonly ended: Promise<string>
  call(method: CallMethod, args: readonly unknown[]): Promise<unknown>
  send(kind: 'want' | 'unwant', target: ViewTarget): void
  close(): Promise<void>
  /** At once. */
  terminate(): Promise<void>
}

const MAX_PENDING = 256
const CALL_MS = 60_000
const CLOSE_MS = 15_000
/** A larger one costs 30 MB with 10,000 servers, and makes nothing quicker. */
const YOUNG_MB = 16

export function startWorker(options: LinkOptions): WorkerLink {
  const { log, clock } = options
  const start: WorkerStart = { engine: true, config: options.config, logLevel: levelOf(log) }
  const worker = new Worker(options.entry, { name: 'engine', workerData: start, resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } })
  const ready = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<string>()
  const pending = new Map<number, PromiseWithResolvers<unknown>>()
  let calls = 0
  let why = ''
  let end: ThvError | undefined

  const post = (message: ToWorker) => worker.postMessage(message)

  worker.on('message', (message: FromWorker) => {
    switch (message.kind) {
      case 'ready':
        return ready.resolve()
      case 'broken':
        why = message.error.message
        return ready.reject(receivedError(message.error))
      case 'result':
        return pending.get(message.id)?.resolve(message.value)
      case 'failure':
        return pending.get(message.id)?.reject(receivedError(message.error))
      case 'publication':
        return options.onPublication(message.publication)
      case 'released':
        return options.onReleased(message.result)
      case 'log':
        log[message.level](message.message, message.fields)
    }
  })
  worker.on('error', (e) => {
    why = errorMessage(e)
  })
  worker.on('exit', (code) => {
    end = new ThvError('store_unavailable', `the engine of the registry has stopped${why === '' ? '' : `: ${why}`}`)
    ready.reject(end)
    for (const { reject } of pending.values()) reject(end)
    ended.resolve(why === '' ? `it ended with code ${code}` : why)
  })
  ready.promise.catch(() => undefined) // the waiting calls receive it

  return {
    ready: ready.promise,
    ended: ended.promise,
    async call(method, args) {
      if (end) throw end
      if (pending.size >= MAX_PENDING) throw new ThvError('store_unavailable', 'too many calls are waiting for the store')
      const id = ++calls
      const answer = Promise.withResolvers<unknown>()
      pending.set(id, answer)
      const late = new ThvError('timeout', `the store did not answer within ${CALL_MS / 1000} s`)
      const timer = clock.setTimer(CALL_MS, () => answer.reject(late))
      try {
        post({ kind: 'call', id, method, args })
        return await answer.promise
      } finally {
        timer.cancel()
        pending.delete(id)
      }
    },
    send: (kind, target) => post({ kind, target }),
    async close() {
      post({ kind: 'close' })
      if (await endsWithin(clock, CLOSE_MS, ended.promise)) return
      log.warn('the engine did not close in time and is ended')
      await worker.terminate()
    },
    terminate: async () => void (await worker.terminate()),
  }
}
