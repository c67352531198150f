import type { AnyFieldTable } from '@thv/runconfig/field'
import { fieldSections } from '@thv/runconfig/field-reference'
import { VMCP_CONFIG_FIELDS } from './vmcp-config-fields.ts'

/** The whole text of docs/reference/vmcp-config.md. Pure: a check compares it with the file. */
export function renderVmcpConfigReference(): string {
  return `${[
    '# Configuration file of a virtual MCP server',
    '<!-- Generated from packages/vmcpconfig; `npm run generate` writes it. -->',
    INTRODUCTION,
    ...fieldSections(VMCP_CONFIG_FIELDS as unknown as AnyFieldTable),
  ].join('\n\n')}\n`
}

const INTRODUCTION = `The YAML or JSON file of \`vmcp serve\`, \`validate\` and \`workflow\` (\`--config\`), of at most 1 MiB. [Join several servers into
one](../how-to/join-servers.md) says how to use it; \`deploy/examples/vmcp\` has an example. For a VirtualMCPServer the operator writes it, and
\`spec.config\` has the same names.

Unknown fields are refused at any depth, and so is a field whose part is not built. All problems are reported at once. A file that is wrong while the server runs changes nothing.`
