import type { JsonObject } from '@thv/kube-schema/kind-schema'
import type { ObjectStore } from '../../store/object-store.ts'
import type { StoredObject } from '../../store/stored-object.ts'
import { CRD_TYPE, type ServedKind, textAt } from '../objects/served-kind.ts'
import { builtinServedKinds } from './builtin-served-kinds.ts'
import { isEstablished } from './crd-status.ts'
import { customServedKinds } from './custom-kinds.ts'
import type { KindSchemas } from './kind-schemas.ts'

/** All kinds that are served now: the built-in ones, and those of the definitions in the store, which it follows. */
export class KindRegistry {
  readonly #store: ObjectStore
  readonly #schemas: KindSchemas
  readonly #builtin: readonly ServedKind[]
  readonly #custom = new Map<string, { revision: number; kinds: readonly ServedKind[] }>()
  #byPath = new Map<string, ServedKind>()
  #version = 0

  constructor(store: ObjectStore, schemas: KindSchemas) {
    this.#store = store
    this.#schemas = schemas
    this.#builtin = builtinServedKinds((gvk) => schemas.builtin(gvk))
    this.#refresh()
    store.onChange(CRD_TYPE, () => this.#refresh())
  }

  /** Grows whenever the kinds may have changed. */
  get version(): number {
    return this.#version
  }

  find(group: string, version: string, plural: string): ServedKind | undefined {
    return this.#byPath.get(`${group}/${version}/${plural}`)
  }

  all(): ServedKind[] {
    return [...this.#byPath.values()]
  }

  /** The definition whose names stand in the way of this one's, in the words of its condition. */
  namesTaken(crd: JsonObject): string | undefined {
    const [group, name] = [textAt(crd, 'spec', 'group'), textAt(crd, 'metadata', 'name')]
    const kind = textAt(crd, 'spec', 'names', 'kind')
    for (const other of this.#definitions()) {
      if (other.name === name || textAt(other.body, 'spec', 'group') !== group || !isEstablished(other.body)) continue
      if (textAt(other.body, 'spec', 'names', 'kind') === kind) return `"${kind}" is already in use`
    }
    return undefined
  }

  #refresh(): void {
    const seen = new Set<string>()
    for (const crd of this.#definitions()) {
      seen.add(crd.name)
      if (this.#custom.get(crd.name)?.revision === crd.revision) continue
      const kinds = isEstablished(crd.body) ? customServedKinds(crd.body, this.#schemas.custom(crd.body), crd.revision) : []
      this.#custom.set(crd.name, { revision: crd.revision, kinds })
    }
    for (const name of [...this.#custom.keys()]) if (!seen.has(name)) this.#custom.delete(name)
    const kinds = [...this.#builtin, ...[...this.#custom.values()].flatMap((one) => one.kinds)]
    this.#byPath = new Map(kinds.map((kind) => [`${kind.group}/${kind.version}/${kind.plural}`, kind]))
    this.#version++
  }

  #definitions(): readonly StoredObject[] {
    const page = this.#store.list({ type: CRD_TYPE })
    return page === 'expired' ? [] : page.objects
  }
}
