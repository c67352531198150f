import type { ToolOrigin } from '@thv/authz/access/operation'
import type { JsonObject } from '@thv/mcp/json-rpc'
import type { Caller, Era } from './request-context.ts'

/** A request for the tools of the backend that a middleware needs for a decision. */
export interface ToolsRequest {
  /** Of the request that made it necessary. */
  readonly era: Era
  /** The caller whose credentials are used. Undefined: the request carries static credentials only. */
  readonly caller: Caller | undefined
  /** Of the client, where its header reaches the backend. */
  readonly authorization: string | undefined
  readonly signal: AbortSignal
}

/** The tools as the backend lists them, all pages. Rejects when they cannot be obtained. */
export interface ToolSource {
  tools(request: ToolsRequest): Promise<readonly JsonObject[]>
  /** Where a tool comes from, by the name that clients see. Undefined: from no backend alone. */
  originOf?(name: string): ToolOrigin | undefined
  /** The same for callers that have the same tools, where the backend itself tells callers apart. */
  callerKey?(): string
  /** The tool searches among the tools, or stands for all of them: it shows nothing that policies hide. */
  isSearch?(name: string): boolean
}

/** The backend of a pipeline that is made before it. A backend may be unable to list its tools. */
export class LateToolSource implements ToolSource {
  #source: Partial<ToolSource> | undefined

  bind(source: Partial<ToolSource>): void {
    this.#source = source
  }

  originOf(name: string): ToolOrigin | undefined {
    return this.#source?.originOf?.(name)
  }

  callerKey(): string {
    return this.#source?.callerKey?.() ?? ''
  }

  isSearch(name: string): boolean {
    return this.#source?.isSearch?.(name) === true
  }

  async tools(request: ToolsRequest): Promise<readonly JsonObject[]> {
    if (this.#source?.tools === undefined) throw new TypeError('this backend cannot be asked for its tools')
    return await this.#source.tools(request)
  }
}
