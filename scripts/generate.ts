import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { renderErrorReference } from '@thv/kernel/error-reference'
import { crdYamlOf } from '@thv/resources/crd-yaml'
import { KINDS } from '@thv/resources/kinds/kinds'
import { renderResourceReference } from '@thv/resources/resource-reference'
import { renderRunConfigReference } from '@thv/runconfig/run-config-reference'
import { renderVmcpConfigReference } from '@thv/vmcpconfig/vmcp-config-reference'
import { renderExternalAuthReference } from '../apps/operator/src/proxy/resolve/external-auth-table.ts'
import { renderApiReference } from '../apps/registry/src/api/api-reference.ts'
import { renderConfigReference } from '../apps/registry/src/config/config-reference.ts'
import { renderFeatures } from '../test/requirements/features.ts'
import { ROOT } from './run.ts'

/*
 * npm run generate: writes the files that are made from others. They are committed, so that people can read them; verify fails when
 * one is stale.
 */

/** Path below the repository → content. */
function generatedFiles(): Map<string, string> {
  const files = new Map<string, string>()
  for (const definition of KINDS) {
    files.set(`deploy/crds/${definition.plural}.yaml`, GENERATED_YAML + crdYamlOf(definition))
  }
  files.set('docs/reference/resources.md', renderResourceReference(KINDS))
  files.set('docs/reference/errors.md', renderErrorReference())
  files.set('docs/reference/runconfig.md', renderRunConfigReference())
  files.set('docs/reference/vmcp-config.md', renderVmcpConfigReference())
  files.set('docs/reference/external-auth.md', renderExternalAuthReference())
  files.set('docs/reference/registry-api.md', renderApiReference())
  files.set('docs/reference/registry-config.md', renderConfigReference())
  files.set('docs/features.md', renderFeatures(ROOT))
  return files
}

const GENERATED_YAML = '# Generated from packages/resources by "npm run generate". Do not edit.\n'
/** Folders that hold nothing but generated files: what is not generated any more is stale too. */
const GENERATED_FOLDERS = ['deploy/crds']

export async function staleGeneratedFiles(): Promise<string[]> {
  const files = generatedFiles()
  const changed = [...files].filter(([path, content]) => readIfThere(path) !== content).map(([path]) => path)
  return [...changed, ...leftovers(files)]
}

function leftovers(files: ReadonlyMap<string, string>): string[] {
  return GENERATED_FOLDERS.flatMap((folder) => readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`)).filter(
    (path) => !files.has(path),
  )
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(join(ROOT, path), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

if (import.meta.main) {
  const files = generatedFiles()
  for (const path of leftovers(files)) rmSync(join(ROOT, path))
  for (const [path, content] of files) {
    mkdirSync(dirname(join(ROOT, path)), { recursive: true })
    if (readIfThere(path) === content) continue
    writeFileSync(join(ROOT, path), content)
    console.log(`wrote ${path}`)
  }
}
