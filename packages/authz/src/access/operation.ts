/** Attributes of a tool that the server claims and a policy may rely on. */
export const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const
export const HINT_NAMES: ReadonlySet<string> = new Set(HINTS)
export type Hints = { readonly [H in (typeof HINTS)[number]]?: boolean }

export type Feature = 'tool' | 'prompt' | 'resource'

/** One thing that a caller wants to do. `args` undefined: without arguments. */
export type Operation =
  | {
      readonly action: 'call_tool'
      /** The name at the server, whatever clients see. */
      readonly name: string
      readonly visibleName: string
      readonly args: Arguments
      readonly hints: Hints | undefined
      /** Behind a virtual server: the backend that has the tool, and its name there. */
      readonly origin?: ToolOrigin | undefined
      /** The server may have further hints, which could not be obtained: they open nothing. */
      readonly mayHaveMoreHints?: boolean
    }
  | { readonly action: 'get_prompt'; readonly name: string; readonly args: Arguments }
  /** A resource, or a template of resources. */
  | { readonly action: 'read_resource'; readonly uri: string }
  | { readonly action: 'list_tools' | 'list_prompts' | 'list_resources' }
  /** Any other method. */
  | { readonly action: 'request'; readonly method: string }

export interface ToolOrigin {
  readonly backend: string
  readonly originalName: string
}

export type Arguments = { readonly [name: string]: unknown } | 'unknown' | undefined

export type Action = Operation['action']

interface ActionFacts {
  /** Type of the resource. */
  readonly type: 'Tool' | 'Prompt' | 'Resource' | 'FeatureType' | 'Method'
  readonly operation: 'call' | 'get' | 'read' | 'list' | 'request'
  readonly feature: Feature | 'method'
}

export const ACTIONS: Readonly<Record<Action, ActionFacts>> = {
  call_tool: { type: 'Tool', operation: 'call', feature: 'tool' },
  get_prompt: { type: 'Prompt', operation: 'get', feature: 'prompt' },
  read_resource: { type: 'Resource', operation: 'read', feature: 'resource' },
  list_tools: { type: 'FeatureType', operation: 'list', feature: 'tool' },
  list_prompts: { type: 'FeatureType', operation: 'list', feature: 'prompt' },
  list_resources: { type: 'FeatureType', operation: 'list', feature: 'resource' },
  request: { type: 'Method', operation: 'request', feature: 'method' },
}
