import type { JsonObject } from '@thv/mcp/json-rpc'
import { SEARCH_TOOLS, type ToolSearchConfig } from '@thv/vmcpconfig/vmcp-config'

/** The names of many backends would fill what the search saves. */
const MAX_NAMES_LENGTH = 1_000

/** `find_tool` and `call_tool` as clients see them. Pure. */
export function searchTools({ description }: ToolSearchConfig, backends: readonly string[]): readonly JsonObject[] {
  return [
    {
      name: SEARCH_TOOLS.call,
      description: `Call a tool that ${SEARCH_TOOLS.find} has found. The result is that of the tool.`,
      inputSchema: {
        type: 'object',
        properties: {
          tool_name: { type: 'string', description: `Name of the tool, as ${SEARCH_TOOLS.find} returned it.` },
          parameters: { type: 'object', description: 'Arguments of the tool, as its inputSchema describes them.' },
        },
        required: ['tool_name'],
      },
    },
    {
      name: SEARCH_TOOLS.find,
      description: description ?? defaultDescription(backends),
      inputSchema: {
        type: 'object',
        properties: {
          tool_description: { type: 'string', description: 'The task, in a few words, such as "create an issue in a repository".' },
          tool_keywords: { type: 'array', items: { type: 'string' }, description: 'Words that the name or description may contain.' },
        },
        required: ['tool_description'],
      },
      outputSchema: {
        type: 'object',
        properties: {
          tools: { type: 'array', items: { type: 'object' }, description: 'Definitions of the tools, the best match first.' },
          omitted: { type: 'integer', description: 'Further matches whose definitions are too large to be returned.' },
          token_metrics: { type: 'object', description: 'Estimated tokens of all tools and of those returned.' },
        },
        required: ['tools'],
      },
      annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
    },
  ]
}

function defaultDescription(backends: readonly string[]): string {
  const text = `Find tools for a task. Most tools of this server are not in its list: search for them here and call them with ${SEARCH_TOOLS.call}.`
  if (backends.length === 0) return text
  const shown: string[] = []
  let length = 0
  for (const name of backends) {
    length += name.length + 2
    if (length > MAX_NAMES_LENGTH) break
    shown.push(name)
  }
  const more = backends.length - shown.length
  return `${text} The tools come from: ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}.`
}
