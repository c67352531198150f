import { type ErrorCode, errorMessage, isThvError, ThvError } from '@thv/kernel/errors'
import type { LogLevel } from '@thv/telemetry/log'
import type { ReleaseResult } from '@thv/telemetry/process-metrics'
import type { RegistryConfig } from '../config/registry-config.ts'
import type { CoreAdmin } from './engine-core.ts'
import type { Publication, ViewTarget } from './publication.ts'

/** The start data of a worker. */
export interface WorkerStart {
  readonly engine: true
  readonly config: RegistryConfig
  readonly logLevel: LogLevel
}

export type CallMethod = keyof CoreAdmin | 'reload' | 'resign'

export type ToWorker =
  | { readonly kind: 'call'; readonly id: number; readonly method: CallMethod; readonly args: readonly unknown[] }
  | { readonly kind: 'want' | 'unwant'; readonly target: ViewTarget }
  | { readonly kind: 'close' }

export type FromWorker =
  | { readonly kind: 'ready' }
  /** It could not start; it ends by itself. */
  | { readonly kind: 'broken'; readonly error: SentError }
  | { readonly kind: 'result'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly error: SentError }
  | { readonly kind: 'publication'; readonly publication: Publication }
  /** It has given memory back. */
  | { readonly kind: 'released'; readonly result: ReleaseResult }
  | { readonly kind: 'log'; readonly level: LogLevel; readonly message: string; readonly fields: Record<string, unknown> }

/** An error on its way through a message port, where classes are lost. */
export interface SentError {
  readonly code: ErrorCode | undefined
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

export function sentError(e: unknown): SentError {
  if (!isThvError(e)) return { code: undefined, message: errorMessage(e), details: {} }
  // Details may hold what cannot be sent.
  return { code: e.code, message: errorMessage(e), details: JSON.parse(JSON.stringify(e.details)) }
}

export function receivedError({ code, message, details }: SentError): Error {
  return code === undefined ? new Error(message) : new ThvError(code, message, { details })
}
