import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { crdYamlOf } from './crd-yaml.ts'
import { KINDS } from './kinds/kinds.ts'
import { crdOf } from './schema/crd.ts'

it.each(KINDS.map((definition) => [definition.kind, definition] as const))(
  '%s means the same in YAML 1.1 (kubectl) and 1.2',
  (_kind, definition) => {
    const yaml = crdYamlOf(definition)
    expect(parse(yaml, { version: '1.1' })).toEqual(crdOf(definition))
    expect(parse(yaml, { version: '1.2' })).toEqual(crdOf(definition))
    expect(yaml).not.toMatch(/[&*][a-z]\d+\b/)
  },
)
