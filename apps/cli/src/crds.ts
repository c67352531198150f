import { ThvError } from '@thv/kernel/errors'
import { crdYamlOf } from '@thv/resources/crd-yaml'
import { KINDS } from '@thv/resources/kinds/kinds'
import type { KindDefinition } from '@thv/resources/schema/kind-definition'

/** All CRDs, or those of the named kinds, as one YAML stream. */
export function printCrds(names: readonly string[]): string {
  const wanted = names.length === 0 ? KINDS : names.map(kindNamed)
  return wanted.map((definition) => `---\n${crdYamlOf(definition)}`).join('')
}

function kindNamed(name: string): KindDefinition {
  const lower = name.toLowerCase()
  const found = KINDS.find((each) => [each.kind.toLowerCase(), each.plural, each.singular, ...each.shortNames].includes(lower))
  if (found) return found
  throw new ThvError('usage', `unknown kind ${JSON.stringify(name)}; available kinds are ${KINDS.map((each) => each.kind).join(', ')}`)
}
