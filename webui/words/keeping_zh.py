"""Chinese for keeping data safe: updates of the database, backups; part of `commands_zh.py`."""

from __future__ import annotations

KEEPING: dict[str, str] = {
    "error.backup_no_data": "{home} 中没有数据库",
    "error.backup_no_data.do": "请用 --home 指定数据文件夹。",
    "error.backup_exists": "{file} 已经存在",
    "error.backup_exists.do": "请换一个名称，或先把它移走。",
    "error.backup_no_write": "无法写入备份 {file}：{why}",
    "error.backup_no_file": "没有文件 {file}",
    "error.backup_not_one": "{file} 不是 Parlour 的备份，或者不完整",
    "error.backup_not_one.do": "请使用另一个备份。",
    "error.backup_damaged": "备份 {file} 中的 {name} 已损坏",
    "error.backup_damaged.do": "请使用另一个备份；没有任何改动。",
    "error.backup_unsafe": "备份 {file} 含有 Parlour 的备份不会有的位置：{name}",
    "error.backup_unsafe.do": "请不要使用它；没有任何改动。",
    "error.backup_newer": "备份 {file} 由更新版本的 Parlour 创建",
    "error.backup_newer.do": "请更新 Parlour 后再恢复；没有任何改动。",
    "error.restore_not_empty": "数据文件夹 {home} 不是空的",
    "error.restore_not_empty.do": "请用 --home 指定一个空文件夹，或加上 --replace：原有内容会保留在旁边。",
    "error.restore_space": "恢复备份需要 {needed} MB 可用空间，目前只有 {free} MB",
    "error.restore_space.do": "请腾出空间后重试。",
    "error.restore_half": "上次把备份恢复到 {home} 时中途停止了",
    "error.restore_half.do": "请在这个文件夹上启动 Parlour，它会先完成恢复。",
    "error.restore_failed": "无法把备份恢复到 {home}：{why}",
    "error.restore_failed.do": "请排除问题后重试。",
    "error.restore_running": "正在把一个备份恢复到 {home}",
    "error.restore_running.do": "请等它完成。",
    "ready.behind": "数据库比数据文件夹旧，里面有 {conversations} 个对话：复制时漏了 -wal 文件，或者它是较旧的副本。"
    "请放回较新的数据库，或恢复一个备份。如果就是要用它，请删除 {note}。",
    "backup.made": "{file}（{size} MB）：{conversations} 个对话，{messages} 条消息，{files} 个文件。",
    "backup.with_secret": "密钥文件也在备份里：拿到这个文件的人可以读取保存的各个密钥。请妥善保管。",
    "backup.without_secret": "备份里没有密钥文件。在别的文件夹恢复后，模型服务和工具服务器的密钥需要重新输入，"
    "靠 Cookie 保留对话的浏览器也找不到原来的对话；加上 --with-secret 可以一并备份。",
    "backup.secret_elsewhere": "备份里没有密钥文件，因为这个文件夹没有：密钥来自 PARLOUR_SECRET，请自行保管。",
    "restore.done": "{home}：{conversations} 个对话，{messages} 条消息，{files} 个文件，备份时间 {made}。",
    "restore.aside": "原有内容在 {folder}。",
    "restore.without_secret": "备份里没有密钥文件：模型服务和工具服务器的密钥需要重新输入，"
    "靠 Cookie 保留对话的浏览器也找不到原来的对话。",
    "error.storage_in_use": "数据库 {path} 正被另一个 Parlour 使用",
    "error.storage_in_use.do": "请先退出那一个，再重试；没有任何改动。",
    "error.storage_update_space": "更新数据库需要 {needed} MB 可用空间，目前只有 {free} MB",
    "error.storage_update_space.do": "请腾出空间后重新启动；没有任何改动。",
    "error.storage_update_lost": "更新数据库会丢失内容（{what}），因此数据库保持原样",
    "error.storage_update_lost.do": "请继续使用原来的 Parlour，并报告这个问题。",
}
