import { describe, expect, it } from 'vitest'
import { at } from '../../objects/served-kind.ts'
import { nodeRules } from './node-rules.ts'

describe('a new node', () => {
  it('can run pods at once: no taint is put on it, unlike on the real server', () => {
    const node = nodeRules.applyDefaults?.({ metadata: { name: 'n' } }) ?? {}
    const made = nodeRules.prepareCreate?.(node) ?? node
    expect(at(made, 'spec')).toEqual({})
    expect(nodeRules.validate?.(made)).toEqual([])
  })
})
