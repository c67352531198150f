import { isObject } from '@thv/kernel/json'
import type { ReportKind } from './report-reader.ts'

/** The images that a registry server lists, as hashes. */
export interface ImagesReport {
  /** False: some sources have never been read. */
  readonly synced: boolean
  readonly images: ReadonlySet<string>
}

/** 200,000 entries, with a hash for the tag and one for the digest of each. */
const MAX_BYTES = 16 << 20

export const IMAGES: ReportKind<ImagesReport> = { path: '/status/images', maxBytes: MAX_BYTES, read }

function read(text: string): ImagesReport | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(value) || !Array.isArray(value['images'])) return undefined
  return { synced: value['synced'] === true, images: new Set(value['images'].filter((hash) => typeof hash === 'string')) }
}
