import { KINDS } from '@thv/resources/kinds'
import { API_GROUP } from '@thv/resources/schema/kind-definition'

/** What `thv` without a command says: what there is, and what to try next. */
export function overview(): string {
  const width = Math.max(...KINDS.map((definition) => definition.kind.length))
  const kinds = KINDS.map((definition) => `  ${definition.kind.padEnd(width)}  ${firstSentence(definition.description)}`)
  return `${[
    'ToolHive TS: declare, protect, join and publish MCP servers.',
    '',
    `The ${KINDS.length} resources of ${API_GROUP}:`,
    '',
    ...kinds,
    '',
    'Try next:',
    '  npx thv crds                         print their definitions',
    '  npx thv crds | kubectl apply -f -    install them into a cluster',
    '  kubectl explain mcpserver.spec       then read about any field',
    '  npx thv tools URL                    list the tools of a running MCP server',
    '  npx thv call URL TOOL name=value     call one of them',
    '',
    'Every field: docs/reference/resources.md. What works and what is planned: docs/features.md.',
  ].join('\n')}\n`
}

function firstSentence(text: string): string {
  const end = text.indexOf('. ')
  return end === -1 ? text : text.slice(0, end + 1)
}
