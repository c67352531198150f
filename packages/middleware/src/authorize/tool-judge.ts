import type { ToolOrigin } from '@thv/authz/access/operation'
import type { Subject } from '@thv/authz/access/principal'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { hasTwins } from '@thv/mcp/lookalike-names'
import type { PolicyHolder } from './authorize.ts'
import { hintsOf } from './listed-item.ts'

export type { PolicyHolder }

/** A call of a tool that no message of the client names, such as a step of a composite tool. */
export interface JudgedCall {
  /** The name that clients see or would see. */
  readonly name: string
  readonly args: JsonObject
  /** As listed, with its hints. */
  readonly item: JsonObject
  readonly origin: ToolOrigin | undefined
}

/** Whether the policies in force permit the caller to make the call itself. */
export function mayCallTool({ current }: PolicyHolder, caller: Subject | undefined, { name, args, item, origin }: JudgedCall): boolean {
  if (hasTwins(args)) return false
  const hints = hintsOf(item, undefined)
  return current.enforced.decide(caller, { action: 'call_tool', name, visibleName: name, args, hints, origin }).allowed
}
