import { request } from 'node:http'
import { createHttpServer } from '@thv/http/server/server'
import { createLogger } from '@thv/telemetry/log'
import type { HttpConfig } from '../../config/registry-config.ts'
import type { RegistryEngine } from '../../engine/engine.ts'
import { createHealthRoutes } from '../health-routes.ts'
import { type Access, openAccess } from '../http/access-port.ts'
import { createRegistryApi } from '../registry-api.ts'

const httpDefaults: HttpConfig = { compression: true, cacheSeconds: 0, publicHealth: true, maxBodyBytes: 1_048_576 }

export interface ApiServerOptions {
  readonly engine: RegistryEngine
  readonly access?: Access
  readonly http?: Partial<HttpConfig>
}

export interface ApiServer extends AsyncDisposable {
  readonly url: string
  readonly logLines: readonly string[]
  call(method: string, target: string, options?: CallOptions): Promise<ApiAnswer>
  get(target: string, headers?: Record<string, string>): Promise<ApiAnswer>
}

export interface CallOptions {
  readonly headers?: Record<string, string>
  /** A string or Buffer goes as it is, anything else as JSON. */
  readonly body?: unknown
}

export interface ApiAnswer {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly bytes: Buffer
  readonly text: string
  /** Parsed; undefined where the body is no JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of all shapes
  readonly json: any
}

const VERSION = { version: '1.2.3', commit: 'abc', buildDate: '2026-01-01T00:00:00Z' }

/** The API on a real socket: what a client sees is what is tested. */
export async function startApi(options: ApiServerOptions): Promise<ApiServer> {
  const { engine, access = openAccess } = options
  const logLines: string[] = []
  const log = createLogger({ format: 'json', write: (line) => void logLines.push(line) })
  const http = { ...httpDefaults, ...options.http }
  const health = createHealthRoutes(engine, { version: VERSION, names: access.anonymous })
  const api = createRegistryApi({
    engine,
    access,
    config: { http, sync: { allowedFolders: ['/allowed'] } },
    version: VERSION,
    log,
    ...(http.publicHealth && { health }),
  })
  const server = createHttpServer({
    handler: (exchange) => api.handle(exchange),
    onError: (error) => void logLines.push(`onError ${error}`),
  })
  const { url, port } = await server.listen({ host: '127.0.0.1', port: 0 })

  function call(method: string, target: string, { headers = {}, body }: CallOptions = {}): Promise<ApiAnswer> {
    const sent = body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
    const type = sent === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(sent)) }
    const { promise, resolve, reject } = Promise.withResolvers<ApiAnswer>()
    // node:http sends the target as it is; fetch would rewrite dots and escapes.
    const outgoing = request(
      { host: '127.0.0.1', port, method, path: target, headers: { ...type, ...headers }, agent: false },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
        response.on('end', () => {
          const bytes = Buffer.concat(chunks)
          const text = bytes.toString()
          resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes, text, json: parsed(text) })
        })
      },
    )
    outgoing.on('error', reject).end(sent)
    return promise
  }

  return {
    url,
    logLines,
    call,
    get: (target, headers) => call('GET', target, headers === undefined ? {} : { headers }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // tests look at `text` then
  }
}
