import type { AnyFieldTable, ValueReader } from '@thv/runconfig/field'
import { describe, expect, it } from 'vitest'
import { VMCP_CONFIG_FIELDS } from './vmcp-config-fields.ts'
import { renderVmcpConfigReference } from './vmcp-config-reference.ts'

describe('docs/reference/vmcp-config.md', () => {
  it('has a row for every field of every part', () => {
    const text = renderVmcpConfigReference()
    const check = (fields: AnyFieldTable) => {
      for (const [name, { reader, doc }] of Object.entries(fields)) {
        expect(text).toContain(`| \`${name}\` | `)
        expect(text).toContain(doc.replaceAll('|', '\\|'))
        into(reader)
      }
    }
    const into = ({ fields, items }: ValueReader<unknown>) => {
      if (fields) check(fields)
      if (items) into(items)
    }
    check(VMCP_CONFIG_FIELDS as unknown as AnyFieldTable)
    expect(text).toContain('## operational.failureHandling.circuitBreaker')
  })
})
