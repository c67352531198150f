import { KINDS } from '@thv/resources/kinds/kinds'
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
    '  npx thv up                           start the platform on this machine, with two servers',
    '  npx thv apply -f FILE                declare a server of your own',
    '  npx thv get mcpservers               see what there is',
    '  npx thv tools NAME                   list the tools of an MCP server, by its name or URL',
    '  npx thv call NAME TOOL name=value    call one of them',
    '  npx thv search TEXT                  find public servers in the registry',
    '  npx thv crds | kubectl apply -f -    install the definitions into a cluster',
    '',
    'Every command: docs/reference/thv.md. Every field: docs/reference/resources.md. What works and what is planned: docs/features.md.',
  ].join('\n')}\n`
}

function firstSentence(text: string): string {
  const end = text.indexOf('. ')
  return end === -1 ? text : text.slice(0, end + 1)
}
