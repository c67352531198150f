import type { ConfigMap } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { writeWaves } from './write-waves.ts'

const maps = (...names: string[]) => names.map((name) => ({ metadata: { name } }) as ConfigMap)
const namesOf = (waves: ReturnType<typeof writeWaves>) => waves.map((wave) => wave.map(({ metadata }) => metadata.name))

describe('writeWaves', () => {
  it('writes numbered ConfigMaps before the first ones, a few at a time', () => {
    const several = maps('a-1', 'a-2', 'a-3', 'a-15', 'a-4', 'a', 'b-1', 'b')
    expect(namesOf(writeWaves(several))).toEqual([
      ['a-1', 'a-2', 'a-3', 'a-15'],
      ['a-4', 'b-1'],
      ['a', 'b'],
    ])
  })

  it('takes a name that ends in a number for a first one where no other stands before it', () => {
    expect(namesOf(writeWaves(maps('team-1', 'a-1', 'a')))).toEqual([['a-1'], ['team-1', 'a']])
    expect(writeWaves([])).toEqual([])
  })
})
