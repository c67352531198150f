import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Files as the kubelet mounts them: links over `..data`, which it replaces in one step. */
export class ProjectedVolume implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'thv-volume-'))
  readonly #linked = new Set<string>()
  #version = 0

  publish(files: Readonly<Record<string, string | Buffer>>): void {
    const version = String(++this.#version)
    mkdirSync(join(this.folder, version))
    for (const [name, content] of Object.entries(files)) {
      writeFileSync(join(this.folder, version, name), content)
      if (!this.#linked.has(name)) symlinkSync(join('..data', name), this.path(name))
      this.#linked.add(name)
    }
    symlinkSync(version, this.path('..data_tmp'))
    renameSync(this.path('..data_tmp'), this.path('..data'))
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
