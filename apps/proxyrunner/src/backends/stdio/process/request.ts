import type { ParsedResponse } from '@thv/mcp/parse-body'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { CallOptions } from './in-flight.ts'
import type { ProcessLink } from './process-connection.ts'

/** A call of the runner itself, or one whose answer is needed before anything else can be said. Never rejects. */
export function requestOf(link: ProcessLink, text: string, options: CallOptions): Promise<ParsedResponse | Rejection> {
  return new Promise((resolve) => {
    link.call({ text, hasToken: false }, { onResponse: resolve, onFailure: resolve }, options)
  })
}
