import { type Call, InputRequired, MissingCapability, RawAnswer } from '../features/call.ts'
import { findTool, isFeature, runFeature } from '../features/dispatch.ts'
import { serverInfo, supportedVersions, type World } from '../state/world.ts'
import {
  failure,
  INTERNAL_ERROR,
  type JsonObject,
  METHOD_NOT_FOUND,
  objectOf,
  RpcError,
  type RpcRequest,
  type RpcResponse,
  success,
} from '../wire/json-rpc.ts'
import { META_SERVER_INFO, MISSING_CAPABILITY, MODERN, TASKS_EXTENSION } from '../wire/protocol.ts'
import { type Envelope, readEnvelope, unsupportedVersion } from './envelope.ts'
import { checkParamHeaders, checkRoutingHeaders, checkVersionHeader } from './header-checks.ts'
import { listen } from './listen.ts'
import { createModernCall, type ModernInbound } from './modern-call.ts'
import { answerTaskMethod, demandTasks, hasTasks, startTask, TASK_METHODS } from './tasks.ts'

export interface ModernAnswer {
  /** HTTP status, should the answer travel as plain JSON. */
  readonly status: number
  /** Absent when the client has gone. */
  readonly response?: RpcResponse
}

/** Serves one request of the modern revision. Nothing is remembered from earlier ones. */
export async function answerModern(world: World, request: RpcRequest, inbound: ModernInbound): Promise<ModernAnswer> {
  const { transport, headers } = inbound
  world.stats.record({ transport, era: 'modern', message: request, ...(headers ? { headers } : {}) })
  try {
    const envelope = checkRequest(world, request, inbound)
    return { status: 200, response: success(request.id, await serve(world, request, { envelope, inbound })) }
  } catch (error) {
    return inbound.signal.aborted || world.signal.aborted ? { status: 200 } : answerFor(world, request, error)
  }
}

/** The order of these checks can be seen from outside, and the suite looks. */
function checkRequest(world: World, request: RpcRequest, { headers }: ModernInbound): Envelope {
  const envelope = readEnvelope(request)
  if (headers) checkVersionHeader(headers, envelope.version)
  if (envelope.version !== MODERN) throw unsupportedVersion(envelope.version, supportedVersions(world))
  if (headers) checkRoutingHeaders(headers, request)
  if (!isServed(request.method)) throw new RpcError(METHOD_NOT_FOUND, `Method not found: ${request.method}`, { status: 404 })
  return envelope
}

function isServed(method: string): boolean {
  return method === 'server/discover' || method === 'subscriptions/listen' || TASK_METHODS.has(method) || isFeature(method)
}

async function serve(world: World, request: RpcRequest, context: { envelope: Envelope; inbound: ModernInbound }): Promise<JsonObject> {
  const { method } = request
  if (method === 'server/discover') return completed(world, method, discover(world))
  if (method === 'subscriptions/listen') return completed(world, method, await listen(world, request, context))
  const call = createModernCall(world, request, context)
  if (method === 'tools/call') return callTool(call, context.inbound)
  const result = TASK_METHODS.has(method) ? answerTaskMethod(method, call) : await runFeature(method, call)
  return completed(world, method, result)
}

async function callTool(call: Call, inbound: ModernInbound): Promise<JsonObject> {
  const tool = findTool(call)
  if (inbound.headers) checkParamHeaders(inbound.headers, tool, call.args)
  if (tool.task === 'required') demandTasks(call.origin.clientCapabilities)
  if (tool.task && hasTasks(call.origin.clientCapabilities)) return startTask(tool, call)
  return completed(call.world, 'tools/call', await runFeature('tools/call', call))
}

function discover(world: World): JsonObject {
  return {
    supportedVersions: supportedVersions(world),
    capabilities: {
      tools: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      prompts: { listChanged: true },
      logging: {},
      completions: {},
      extensions: { [TASKS_EXTENSION]: {} },
    },
    instructions: 'A server for tests.',
  }
}

const CACHEABLE = new Set(['server/discover', 'tools/list', 'prompts/list', 'resources/list', 'resources/templates/list', 'resources/read'])

function completed(world: World, method: string, result: JsonObject): JsonObject {
  const caching = { ttlMs: world.options.ttlMs, cacheScope: method === 'resources/read' ? 'private' : 'public' }
  return {
    resultType: 'complete',
    ...result,
    ...(CACHEABLE.has(method) ? caching : {}),
    _meta: { ...objectOf(result['_meta']), ...stamp(world) },
  }
}

function stamp(world: World): JsonObject {
  return { [META_SERVER_INFO]: serverInfo(world) }
}

function answerFor(world: World, request: RpcRequest, error: unknown): ModernAnswer {
  if (error instanceof RawAnswer) return { status: 200, response: error.response }
  if (error instanceof InputRequired) {
    return { status: 200, response: success(request.id, { resultType: 'input_required', ...error.result, _meta: stamp(world) }) }
  }
  const mapped = asRpcError(error)
  return { status: mapped.status, response: failure(request.id, mapped) }
}

function asRpcError(error: unknown): RpcError {
  if (error instanceof RpcError) return error
  if (error instanceof MissingCapability) {
    return new RpcError(MISSING_CAPABILITY, error.message, { status: 400, data: { requiredCapabilities: error.required } })
  }
  return new RpcError(INTERNAL_ERROR, error instanceof Error ? error.message : String(error))
}
