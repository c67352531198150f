import { get } from 'node:http'
import type { Pod } from '@thv/kube'
import { INTERNAL_PORT } from '../objects/names.ts'
import { readSourcesReport, type SourcesReport } from './sources-report.ts'

const TIMEOUT_MS = 2_000
const MAX_BYTES = 1 << 20
const MAX_KNOWN = 2_000

/** Asks registry pods for the state of their sources: within two seconds, with the tag of the last answer. */
export class ReportReader {
  /** By pod. */
  readonly #known = new Map<string, { readonly tag: string; readonly report: SourcesReport }>()

  /** Undefined when the pod does not answer as it should. */
  async read({ metadata, status }: Pod, signal: AbortSignal): Promise<SourcesReport | undefined> {
    const address = status?.podIP
    if (typeof address !== 'string' || address === '') return undefined
    const id = metadata.uid ?? address
    const known = this.#known.get(id)
    const answer = await ask(address, known?.tag, signal)
    if (answer?.status === 304) return known?.report
    const report = answer?.status === 200 ? readSourcesReport(answer.body) : undefined
    this.#known.delete(id)
    if (report !== undefined && answer?.tag !== undefined) this.#known.set(id, { tag: answer.tag, report })
    const oldest = this.#known.keys().next().value
    if (this.#known.size > MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest)
    return report
  }
}

interface Answer {
  readonly status: number
  readonly tag: string | undefined
  readonly body: string
}

/** Undefined for every failure: the caller says so in a condition and asks again. */
function ask(address: string, tag: string | undefined, signal: AbortSignal): Promise<Answer | undefined> {
  const host = address.includes(':') ? `[${address}]` : address
  return new Promise((resolve) => {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)])
    const options = { agent: false, signal: limited, headers: tag === undefined ? {} : { 'If-None-Match': tag } }
    const request = get(`http://${host}:${INTERNAL_PORT}/status/sources`, options, (response) => {
      const parts: Buffer[] = []
      let bytes = 0
      response.on('data', (part: Buffer) => {
        bytes += part.length
        if (bytes > MAX_BYTES) request.destroy()
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
