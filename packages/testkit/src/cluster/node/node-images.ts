import { open } from 'node:fs/promises'
import { runtimeSocket } from './node-config.ts'
import { runInNode } from './node-place.ts'

/** Loads an archive into the node. Through standard input: the archive may lie where the node's own folders cover the host's. */
export async function importImage(initPid: number, archive: string): Promise<void> {
  const file = await open(archive, 'r')
  try {
    const command = ['ctr', '--address', runtimeSocket, '--namespace', 'k8s.io', 'images', 'import', '-']
    await runInNode(initPid, command, { stdin: file.fd, limitMs: 180_000 })
  } finally {
    await file.close()
  }
}
