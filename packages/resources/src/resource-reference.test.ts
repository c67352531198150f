import { expect, it } from 'vitest'
import { mcpGroup } from './kinds/mcp-group/schema.ts'
import { mcpToolConfig } from './kinds/mcp-tool-config/schema.ts'
import { renderResourceReference } from './resource-reference.ts'

it('lists kinds, fields with type, need and meaning, and rules', () => {
  const page = renderResourceReference([mcpGroup, mcpToolConfig])
  expect(page).toContain('| [MCPGroup](#mcpgroup) | `mcpg`, `mcpgroup` |')
  expect(page).toContain('| `toolsFilter` | string[] |  | Names of the tools that clients see')
  expect(page).toContain('| `toolsOverride.<key>.name` | string |  | New name of the tool.')
  expect(page).toContain(
    '| `phase` | string |  | Ready once the members were listed, even if there are none; Failed while the operator cannot list them. One of `Ready`, `Pending`, `Failed`. Default `"Pending"`.',
  )
  expect(page).toContain('| `conditions[].type` | string | yes |')
  expect(page).toContain('- `spec.toolsOverride.<key>`: an override must set at least one of')
})

it('keeps each table row on one line with the same number of cells', () => {
  const rows = renderResourceReference([mcpGroup, mcpToolConfig])
    .split('\n')
    .filter((line) => line.startsWith('| `'))
  expect(rows.length).toBeGreaterThan(20)
  expect(rows.filter((row) => row.replaceAll('\\|', '').split('|').length !== 6)).toEqual([])
})
