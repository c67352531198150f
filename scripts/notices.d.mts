export interface Notice {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly text: string
}
export function packageFolders(paths: readonly string[]): string[]
export function noticesText(folders: readonly string[], options: { root: string; isShipped?: boolean }): string
export function noticeOf(folder: string, root: string): Notice
