import { METHODS, NOTIFICATIONS } from '@thv/mcp/methods'
import type { AuditEventType } from '@thv/runconfig/audit-config'
import type { RequestContext } from '../pipeline/request-context.ts'
import type { AuditTarget } from './audit-event.ts'

const BY_METHOD: ReadonlyMap<string, AuditEventType> = new Map([
  [METHODS.initialize, 'mcp_initialize'],
  [METHODS.toolsCall, 'mcp_tool_call'],
  [METHODS.toolsList, 'mcp_tools_list'],
  [METHODS.resourcesRead, 'mcp_resource_read'],
  [METHODS.resourcesList, 'mcp_resources_list'],
  [METHODS.resourceTemplatesList, 'mcp_resources_list'],
  [METHODS.promptsGet, 'mcp_prompt_get'],
  [METHODS.promptsList, 'mcp_prompts_list'],
  [METHODS.ping, 'mcp_ping'],
  [METHODS.setLevel, 'mcp_logging'],
  [METHODS.complete, 'mcp_completion'],
  [NOTIFICATIONS.rootsListChanged, 'mcp_roots_list_changed'],
])

/** `http_request` where no message was read: wrong paths, rejected tokens, broken bodies, DELETE. */
export function eventTypeOf(context: RequestContext): AuditEventType {
  const { received } = context
  if (received === undefined) return opensStream(context) ? 'sse_connection' : 'http_request'
  return BY_METHOD.get(received.method ?? '') ?? (received.kind === 'notification' ? 'mcp_notification' : 'mcp_request')
}

export function targetTypeOf(context: RequestContext): AuditTarget['type'] {
  switch (context.received?.method) {
    case METHODS.toolsCall:
      return 'tool'
    case METHODS.resourcesRead:
    case METHODS.resourcesSubscribe:
    case METHODS.resourcesUnsubscribe:
      return 'resource'
    case METHODS.promptsGet:
      return 'prompt'
    case undefined:
      return opensStream(context) ? 'sse_endpoint' : 'endpoint'
    default:
      return 'endpoint'
  }
}

/** The tool, prompt or resource that the client named, whatever it is; undefined where the method names none. */
export function targetNameOf({ received }: RequestContext): string | undefined {
  const params = received?.kind === 'response' ? undefined : received?.message.params
  const name = params === undefined ? undefined : (params['name'] ?? params['uri'])
  return typeof name === 'string' ? name : undefined
}

function opensStream({ exchange, route }: RequestContext): boolean {
  const { accept } = exchange.headers
  return exchange.method === 'GET' && (route === '/sse' || (typeof accept === 'string' && accept.includes('text/event-stream')))
}
