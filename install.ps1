# SPDX-License-Identifier: Apache-2.0
# install.ps1 - Vitrine on Windows: in WSL2, which is Linux. Run it in the directory of the source.
$ErrorActionPreference = 'Stop'

if (-not (Get-Command wsl.exe -ErrorAction SilentlyContinue)) {
    Write-Error 'wsl.exe is missing: this needs Windows 10 2004 or later, or Windows 11.'
}
$distributions = (wsl.exe --list --quiet) -replace "`0", '' | Where-Object { $_ -ne '' }
if (-not $distributions) {
    Write-Host 'Installing WSL2 with Debian. Windows may have to be restarted; then run this again.'
    wsl.exe --install --distribution Debian
    exit $LASTEXITCODE
}
wsl.exe -- sh -c './install.sh'
if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }
Write-Host 'Installed. Keep projects inside WSL (for example ~/project), and start: wsl vitrine run -- CMD'
