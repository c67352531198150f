import { headerText } from '@thv/http/header-map'
import type { Clock } from '@thv/kernel/clock'
import { METHODS, NOTIFICATIONS } from '@thv/mcp/methods'
import type { Attributes, SpanRecord } from '@thv/telemetry/otlp/otlp-json'
import { scrub } from '@thv/telemetry/redact'
import type { TraceContext } from '@thv/telemetry/trace/trace-context'
import type { RequestContext } from '../pipeline/request-context.ts'
import { type KnownNames, OTHER } from './known-names.ts'

export interface SpanOptions {
  readonly server: string
  readonly usesLegacyAttributes: boolean
  /** Of every span, such as `environment.NAME`. */
  readonly attributes: Attributes
  readonly sourceAddress: (exchange: RequestContext['exchange']) => string
}

const KNOWN_METHODS: ReadonlySet<string> = new Set([...Object.values(METHODS), ...Object.values(NOTIFICATIONS)])

/** Describes exchanges as server spans. Session ids, queries, arguments and results are left out. */
export function createSpanOf(options: SpanOptions, clock: Clock, names: KnownNames) {
  return (context: RequestContext, trace: TraceContext): SpanRecord => {
    const { exchange } = context
    const endMs = clock.now()
    const { traceId, spanId, parentSpanId, state: traceState } = trace
    const attributes = attributesOf(context, options, names)
    const startMs = endMs - Math.max(0, clock.monotonic() - exchange.startedAt)
    return {
      traceId,
      spanId,
      parentSpanId,
      traceState,
      name: spanName(context, names),
      startMs,
      endMs,
      attributes,
      isError: isError(context),
    }
  }
}

/** `tools/call echo`; without a message `GET /mcp`. Names that clients make up are left out. */
function spanName(context: RequestContext, names: KnownNames): string {
  const { exchange, received, route } = context
  if (received === undefined) return `${exchange.method} ${route}`.trimEnd()
  const method = methodOf(context) ?? 'response'
  const name = names.of(context)
  return name === undefined || name === OTHER ? method : `${method} ${name}`
}

/** A method that is not part of MCP is `other`. */
export function methodOf({ received }: RequestContext): string | undefined {
  const method = received?.method
  return method === undefined || KNOWN_METHODS.has(method) ? method : OTHER
}

function isError({ exchange, outcome }: RequestContext): boolean {
  return exchange.status >= 500 || outcome === 'error'
}

/** As in semantic conventions: a code where there is one. */
export function errorTypeOf({ exchange, outcome, failure, rejection }: RequestContext): string | undefined {
  if (outcome === 'toolError') return 'tool_error'
  if (failure !== undefined) return String(failure.code)
  if (rejection !== undefined) return rejection.error
  return exchange.status >= 400 ? String(exchange.status) : undefined
}

function attributesOf(context: RequestContext, options: SpanOptions, names: KnownNames): Attributes {
  const { exchange, received, backend } = context
  const agent = headerText(exchange.headers['user-agent'])
  const userAgent = agent === undefined ? undefined : scrub(agent.slice(0, 256))
  const method = methodOf(context)
  const name = names.of(context)
  const isTool = received?.method === METHODS.toolsCall
  const id = received?.kind === 'request' ? String(received.id).slice(0, 128) : undefined
  const legacy = options.usesLegacyAttributes
  return {
    ...options.attributes,
    'http.request.method': exchange.method,
    'url.scheme': 'http',
    'url.path': scrub(exchange.path.slice(0, 256)),
    'server.address': headerText(exchange.headers['host'])?.slice(0, 256),
    'user_agent.original': userAgent,
    'http.response.status_code': exchange.begun ? exchange.status : undefined,
    'http.response.body.size': exchange.bytesSent,
    'mcp.method.name': method,
    'rpc.system.name': received === undefined ? undefined : 'jsonrpc',
    'jsonrpc.protocol.version': received === undefined ? undefined : '2.0',
    'jsonrpc.request.id': id,
    'gen_ai.tool.name': isTool ? name : undefined,
    'gen_ai.operation.name': isTool ? 'execute_tool' : undefined,
    'gen_ai.prompt.name': isTool ? undefined : name,
    'mcp.server.name': options.server,
    'network.transport': backend.transport === 'stdio' ? 'pipe' : 'tcp',
    'client.address': options.sourceAddress(exchange),
    'error.type': errorTypeOf(context),
    ...(legacy && {
      'http.method': exchange.method,
      'http.scheme': 'http',
      'http.host': headerText(exchange.headers['host'])?.slice(0, 256),
      'http.target': scrub(exchange.path.slice(0, 256)),
      'http.user_agent': userAgent,
      'http.status_code': exchange.begun ? exchange.status : undefined,
      'mcp.method': method,
      'mcp.request.id': id,
      'mcp.tool.name': isTool ? name : undefined,
      'mcp.prompt.name': isTool ? undefined : name,
      'mcp.transport': backend.transport,
      'rpc.system': received === undefined ? undefined : 'jsonrpc',
      'rpc.service': received === undefined ? undefined : 'mcp',
    }),
  }
}
