import { get } from 'node:http'
import type { Pod } from '@thv/kube'
import { INTERNAL_PORT } from '../objects/names.ts'

const TIMEOUT_MS = 2_000
const MAX_KNOWN = 2_000
const MAX_KNOWN_BYTES = 64 << 20

export interface ReportKind<T> {
  /** On the internal port. */
  readonly path: string
  readonly maxBytes: number
  /** Undefined for what is no such report. */
  readonly read: (text: string) => T | undefined
}

interface KnownReport<T> {
  readonly tag: string
  readonly report: T
  readonly bytes: number
}

/** Asks registry pods for a report: within two seconds, with the tag of the last answer. */
export class ReportReader<T> {
  readonly #kind: ReportKind<T>
  readonly #ask: typeof ask
  /** By pod, the one that was read last at the end. Pods that are gone make room for others. */
  readonly #known = new Map<string, KnownReport<T>>()
  #bytes = 0

  constructor(kind: ReportKind<T>, askPod = ask) {
    this.#kind = kind
    this.#ask = askPod
  }

  /** Undefined when the pod does not answer as it should. */
  async read({ metadata, status }: Pod, signal: AbortSignal): Promise<T | undefined> {
    const address = status?.podIP
    if (typeof address !== 'string' || address === '') return undefined
    const id = metadata.uid ?? address
    const known = this.#known.get(id)
    const answer = await this.#ask(address, { ...this.#kind, tag: known?.tag, signal })
    if (answer?.status === 304) return known?.report
    const report = answer?.status === 200 ? this.#kind.read(answer.body) : undefined
    this.#forget(id)
    if (report !== undefined && answer?.tag !== undefined) this.#keep(id, { tag: answer.tag, report, bytes: answer.body.length })
    return report
  }

  #keep(id: string, known: KnownReport<T>): void {
    this.#known.set(id, known)
    this.#bytes += known.bytes
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_KNOWN && this.#bytes <= MAX_KNOWN_BYTES) return
      this.#forget(oldest)
    }
  }

  #forget(id: string): void {
    this.#bytes -= this.#known.get(id)?.bytes ?? 0
    this.#known.delete(id)
  }
}

interface Question {
  readonly path: string
  readonly maxBytes: number
  readonly tag: string | undefined
  readonly signal: AbortSignal
}

interface Answer {
  readonly status: number
  readonly tag: string | undefined
  readonly body: string
}

/** Undefined for every failure: the caller says so in a condition and asks again. */
function ask(address: string, { path, maxBytes, tag, signal }: Question): Promise<Answer | undefined> {
  const host = address.includes(':') ? `[${address}]` : address
  return new Promise((resolve) => {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)])
    const options = { agent: false, signal: limited, headers: tag === undefined ? {} : { 'If-None-Match': tag } }
    const request = get(`http://${host}:${INTERNAL_PORT}${path}`, options, (response) => {
      const parts: Buffer[] = []
      let bytes = 0
      response.on('data', (part: Buffer) => {
        bytes += part.length
        if (bytes > maxBytes) request.destroy()
        else parts.push(part)
      })
      response.on('error', () => resolve(undefined))
      response.on('close', () => {
        const { statusCode: status = 0, headers, complete } = response
        resolve(complete ? { status, tag: headers.etag, body: Buffer.concat(parts).toString('utf8') } : undefined)
      })
    })
    request.on('error', () => resolve(undefined))
  })
}
