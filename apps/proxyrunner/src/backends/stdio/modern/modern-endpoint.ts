import { acceptedForms } from '@thv/gateway/response/accepted-forms'
import { unavailable } from '@thv/gateway/response/backend-rejection'
import { HttpReply } from '@thv/gateway/response/reply'
import { sendRejection } from '@thv/gateway/response/send-rejection'
import { ClientStream } from '@thv/gateway/streams/client-stream'
import { sendEmpty } from '@thv/http/server/respond'
import { isObject } from '@thv/mcp/json-rpc'
import { spliceMember } from '@thv/mcp/json-splice'
import { METHODS, REMOVED_IN_MODERN } from '@thv/mcp/methods'
import { type ParsedRequest, parseText } from '@thv/mcp/parse-body'
import { MODERN_VERSION } from '@thv/mcp/versions'
import { type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import type { ProcessLink } from '../process/process-connection.ts'
import { isUnavailable } from '../process/process-unavailable.ts'
import type { StdioDeps } from '../process/stdio-deps.ts'
import type { ProcessPool } from '../process-pool.ts'
import { ListenStream } from './listen-stream.ts'
import { ModernCall } from './modern-call.ts'
import type { ModernProcess } from './modern-process.ts'

/**
 * Modern requests. The envelope goes to the process as the client sent it: on a pipe there are no headers that could say it otherwise,
 * and the client is the server's peer in all but transport (the same reasoning as for the transparent path of HTTP backends, §4.1).
 * Replaced are the id, the progress token and the subscription id, which belong to this hop.
 */
export class ModernEndpoint {
  readonly #deps: StdioDeps
  readonly #pool: ProcessPool
  readonly #pipeline: Pipeline

  constructor(deps: StdioDeps, pool: ProcessPool, pipeline: Pipeline) {
    this.#deps = deps
    this.#pool = pool
    this.#pipeline = pipeline
  }

  async post(context: MessageContext): Promise<void> {
    const { received, outgoing, exchange } = context
    // On HTTP a modern client cancels by hanging up, and there is no other notification it could send.
    if (received.kind !== 'request' || outgoing.kind !== 'request') return sendEmpty(exchange, 202)
    if (REMOVED_IN_MODERN.has(received.method)) return sendRejection(exchange, reject('method_not_found'), received.id)
    const process = await this.#ready()
    if ('error' in process) return sendRejection(exchange, process, received.id)
    const fault = await this.#fault(process, outgoing, context)
    if (fault !== undefined) return sendRejection(exchange, fault, received.id)
    if (exchange.closed) return
    // Taken over into one turn with the check above: the process may have ended while the tools were read.
    const link = process.slot.link
    if (link === undefined) return sendRejection(exchange, unavailable('it has just ended'), received.id)
    await (received.method === METHODS.listen ? this.#listen(process, link, context) : this.#call(link, context, outgoing))
  }

  endListens(): void {
    for (const process of this.#pool.modernProcesses()) process.endListens()
  }

  async #ready(): Promise<ModernProcess | Rejection> {
    const { eras } = this.#pool
    const refusal = () => eras.rejectionOf('modern', MODERN_VERSION)
    if (eras.isRefused('modern')) return refusal()
    const process = this.#pool.modern()
    const readiness = process.slot.link ?? (await process.slot.ready())
    if (isUnavailable(readiness)) return readiness.refused === undefined ? readiness.rejection : refusal()
    return process.slot.greeting?.era === 'modern' ? process : refusal()
  }

  #fault(process: ModernProcess, { message }: ParsedRequest, { exchange }: MessageContext) {
    const link = process.slot.link
    if (message.method !== METHODS.toolsCall || link === undefined) return undefined
    return process.annotations.check(link, message.params, exchange.headers)
  }

  #call(link: ProcessLink, context: MessageContext, request: ParsedRequest): Promise<void> {
    const call = new ModernCall({
      context,
      request,
      reply: this.#reply(context),
      pipeline: this.#pipeline,
      config: this.#deps.config,
      ...(request.method === METHODS.discover ? { edit: (text: string) => this.#servedOnly(text) } : {}),
    })
    return call.run(link)
  }

  async #listen(process: ModernProcess, link: ProcessLink, context: MessageContext): Promise<void> {
    const { outgoing: request, exchange } = context
    if (request.kind !== 'request') return
    const reply = this.#reply(context)
    if (!reply.canStream) return sendRejection(exchange, reject('not_acceptable'), request.id)
    if (process.listens >= this.#deps.config.maxListens) {
      return sendRejection(exchange, reject('internal_error', { detail: 'too many subscriptions' }), request.id)
    }
    await process.listen(new ListenStream({ context, request, reply, pipeline: this.#pipeline, config: this.#deps.config }), link)
  }

  #reply({ exchange }: MessageContext): HttpReply {
    const { clock, metrics } = this.#deps
    return new HttpReply({
      exchange,
      accepts: acceptedForms(exchange.headers['accept']),
      openStream: () => new ClientStream({ clock, metrics }),
    })
  }

  /** A server may list versions that the configuration does not let through. */
  #servedOnly(text: string): string {
    if (!this.#pool.eras.isRefused('legacy')) return text
    const parsed = parseText(text)
    const result = parsed.kind === 'response' && 'result' in parsed.message ? parsed.message.result : undefined
    const versions = isObject(result) ? result['supportedVersions'] : undefined
    if (!Array.isArray(versions)) return text
    return spliceMember(text, ['result', 'supportedVersions'], JSON.stringify(this.#pool.eras.served(versions)))
  }
}
